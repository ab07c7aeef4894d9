package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/internal/durations"
	"github.com/leasehold/leasehold/store"
)

// Settings are what can be set by flag, environment and file. Each flag is offered by the commands
// that it concerns.
func Settings() []config.Setting {
	url, err := defaultStore()
	if err != nil {
		url = "" // told when it is needed
	}
	return []config.Setting{
		{Name: "store", Default: url, Check: func(v string) error { _, err := ParseStore(v); return err }},
		{Name: "ttl", Default: supervise.DefaultTTL.String(), Check: checkTTL},
		{Name: "kill-after", Check: checkDuration},
		{Name: "contain", Default: string(supervise.ContainAuto), Check: checkContain},
		{Name: "conflict-exit-code", Default: strconv.Itoa(ExitConflict), Check: checkExitCode},
		{Name: "as", Default: "", Check: checkAs},
		{Name: "keys", Default: ""},
		{Name: "output", Default: output.Table, Check: output.Check},
		{Name: "quiet", Default: "false", Check: checkBool},
		{Name: "log-format", Default: logPlain, Check: checkLogFormat},
		{Name: "log-level", Default: "info", Check: checkLogLevel},
	}
}

// completed fills in what follows from other settings.
func completed(values config.Values) config.Values {
	for i, v := range values {
		if v.Setting.Name == "kill-after" && v.Text == "" {
			ttl, _ := durations.Parse(values.Get("ttl")) // checked before
			values[i].Text = supervise.Timing{TTL: ttl}.WithDefaults().KillAfter.String()
		}
	}
	return values
}

// Flag offers the flag of a setting.
func (a *App) Flag(flags *pflag.FlagSet, name string) {
	switch name {
	case "store":
		flags.Var(new(once), name, "where leases are kept: file:PATH, or the URL of a server, as etcd://HOST (default: a file in your state directory)")
	case "quiet":
		flags.BoolP(name, "q", false, "say nothing but errors")
	case "log-format":
		flags.String(name, "", "form of what is said on standard error: plain, text or json (default plain)")
	case "log-level":
		flags.String(name, "", "debug, info, warn or error (default info; --quiet is error)")
	case "ttl":
		flags.String(name, "", "how long the name stays taken after the last sign of life (default 20s)")
	case "kill-after":
		flags.String(name, "", "how long CMD has from SIGTERM to SIGKILL (default 2s, or a tenth of the TTL)")
	case "contain":
		flags.String(name, "", "how all that CMD starts is found and ended: auto, cgroup, descendants or group (default auto: the first that is allowed)")
	case "conflict-exit-code":
		flags.StringP(name, "E", "", "exit code when the name was not acquired (default 75)")
	case "as":
		flags.String(name, "", "a name for the holder, shown to people")
	case "keys":
		flags.String(name, "", "file with the keys that sign sequencers, one to a line: the first one signs, all of them verify")
	case "output":
		flags.StringP(name, "o", "", "table, json or jsonl (default table)")
	}
}

// once is a text that is given once: of two stores the second would be used without a word.
type once string

// String returns the text.
func (o *once) String() string { return string(*o) }

// Set reads the text.
func (o *once) Set(text string) error {
	if *o != "" && string(*o) != text {
		return errors.New("it was given before as " + strconv.Quote(engines.Redact(string(*o))) + ": give it once")
	}
	*o = once(text)
	return nil
}

// Type is what the help calls the value.
func (*once) Type() string { return "string" }

// Duration returns a setting that has been checked to be one.
func (a *App) Duration(name string) time.Duration {
	d, _ := durations.Parse(a.Values.Get(name))
	return d
}

func checkDuration(v string) error {
	d, err := durations.Parse(v)
	if err != nil {
		return fmt.Errorf("%q: %w", v, err)
	}
	if d < 0 {
		return fmt.Errorf("%q: want a duration such as 20s or 1m30s", v)
	}
	return nil
}

func checkTTL(v string) error {
	switch d, err := durations.Parse(v); {
	case err != nil:
		return fmt.Errorf("%q: %w", v, err)
	case d <= 0:
		return fmt.Errorf("%q: want a duration above 0, such as 20s or 1m30s", v)
	case d < store.MinTTL || d > store.MaxTTL:
		return fmt.Errorf("%q: want a duration from %v to %dd", v, store.MinTTL, store.MaxTTL/(24*time.Hour))
	}
	return nil
}

func checkAs(v string) error {
	if len(v) > 100 || strings.Contains(v, "/") || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%.60q: want at most 100 printable characters, without a slash", v)
	}
	return nil
}

func checkContain(v string) error {
	if !slices.Contains(supervise.Contains, supervise.Contain(v)) {
		return fmt.Errorf("%q: want auto, cgroup, descendants or group", v)
	}
	return nil
}

func checkExitCode(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 0 || n > 255 {
		return fmt.Errorf("%q: want an exit code from 0 to 255", v)
	}
	return nil
}

func checkBool(v string) error {
	if v != "true" && v != "false" {
		return fmt.Errorf("%q: want true or false", v)
	}
	return nil
}

// configDir returns the user's configuration directory.
func configDir() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config"), err
}

// Everywhere are the settings that every command has.
var Everywhere = []string{"store", "quiet", "log-format", "log-level"}
