package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/step"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{servers.Main(m)}, map[string]func(){"leasehold": main, step.KeeperName: main, "stamp": stamp, "ticker": ticker, "span": span, "oldname": oldName, "minter": minter, "shardling": shardling})
}

type leakChecked struct{ m servers.M }

func (l leakChecked) Run() int {
	// A runner in the background starts its tests with these ignored, and so would be every command that they start.
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	code := l.m.Run()
	if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.signal_recv")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// ticker is a command to supervise. Every millisecond it writes the reading of the clock over the 20 characters of the file
// that is named by its first argument. With a second argument it ignores SIGTERM.
func ticker() {
	if len(os.Args) > 2 {
		signal.Ignore(syscall.SIGTERM)
	}
	f, err := os.Create(os.Args[1])
	for err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%020d", clock.System().Now()), 0)
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// stamp is a command to supervise that writes the reading of the clock to a file, and ends.
func stamp() {
	if err := os.WriteFile(os.Args[1], fmt.Appendf(nil, "%020d", clock.System().Now()), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scripts runs the scripts of one command.
func scripts(t *testing.T, dir string) { t.Helper(); scriptsIn(t, dir, nil) }

// scriptsIn is scripts with these variables set.
func scriptsIn(t *testing.T, dir string, vars map[string]string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", dir),
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("USER", "ada")
			for name, value := range vars {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"await": await},
		RequireExplicitExec: true, RequireUniqueNames: true,
	})
}

// await waits until the file that is named exists.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(patienceOfTests); ; time.Sleep(5 * time.Millisecond) {
		_, err := os.Stat(ts.MkAbs(args[0]))
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			ts.Fatalf("%s: %v", args[0], err)
		}
	}
}

// patienceOfTests is how long a test waits for what has to come, on a machine that is busy.
const patienceOfTests = 2 * time.Minute
