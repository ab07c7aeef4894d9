//go:build unix

package cli

import (
	"os"
	"syscall"
)

// ownedByAnother reports whether a folder is there that isn't this user's.
func ownedByAnother(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) != os.Geteuid()
}
