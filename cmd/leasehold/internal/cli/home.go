package cli

import (
	"fmt"
	"os"
	"os/user"
)

// otherHome says why the default store may not be the one that the person at the keyboard means;
// "" if nothing speaks for that. The default store is in the home of a user, so sudo changes it.
func otherHome() string {
	url, err := defaultStore()
	if err != nil {
		return ""
	}
	me := "this user"
	if u, err := user.Current(); err == nil {
		me = u.Username
	}
	const fix = "name one store for both with --store or LEASEHOLD_STORE (`leasehold init file --help` makes one for several users)"
	if by := os.Getenv("SUDO_USER"); by != "" && by != me {
		return fmt.Sprintf("%s is the default store of %s, by sudo, and not that of %s: %s", url, me, by, fix)
	}
	if home := os.Getenv("HOME"); home != "" && ownedByAnother(home) {
		return fmt.Sprintf("%s is in the home of another user than %s (HOME=%s), who may not be able to use what is made there: %s", url, me, home, fix)
	}
	return ""
}

// hintHome says once, for people, what otherHome has found.
func (a *App) hintHome() {
	if a.hinted {
		return
	}
	a.hinted = true
	if why := otherHome(); why != "" {
		a.Say("%s", why)
	}
}
