// Package early runs `leasehold run` on a store in a file before the rest of the program is
// initialised, which costs more than such a run does. Packages are initialised in the order of
// their import paths, each once those that it imports are. So this package must not reach the
// clients of servers, and each package that it reaches may have others initialised before it: a
// test looks at what is.
//
// It is the same code as without it. Where a call is anything else than a correct `run` on a file,
// nothing is done or said here, and main begins anew.
package early

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/run"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != "run" {
		return
	}
	// Threads that wake each other on several processors take a tenth of a short run. Most of the
	// time such a run waits.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	// The goroutine that initialises packages is bound to its thread: each wait would switch
	// threads.
	code := make(chan int)
	go func() {
		grow(false)
		code <- try(os.Args[1:])
	}()
	if code := <-code; code != cli.NotBegun {
		os.Exit(code)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	}
}

// grow makes the stack as large as a run needs it, at once: else it is copied, frame by frame, each
// time that it doubles. use would take the room, which is then written to.
//
//go:noinline
func grow(use bool) {
	if use {
		var room [48 << 10]byte
		write(room[:])
	}
}

//go:noinline
func write([]byte) {}

// try returns the exit code of a run, or [cli.NotBegun].
func try(args []string) int {
	a := cli.New()
	begun := false
	root := &cobra.Command{Use: "leasehold", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: a.Begin}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetHelpFunc(func(*cobra.Command, []string) {}) // main has it
	for _, name := range cli.Everywhere {
		a.Flag(root.PersistentFlags(), name)
	}
	for _, cmd := range run.Commands(a, nil) {
		f := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			begun = true
			return f(cmd, args)
		}
		root.AddCommand(cmd)
	}
	return a.ExecuteIf(root, args, func() bool { return begun })
}
