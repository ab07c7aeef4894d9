package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes. CMD's own code is passed on, and 128 plus the number of the signal that ended it.
const (
	// check: not the current term; release, break: so nothing was done; show, history: no such
	// name.
	ExitNo       = 1
	ExitUsage    = 64  // EX_USAGE: the command line or the configuration is wrong
	ExitConflict = 75  // EX_TEMPFAIL: not acquired
	ExitLost     = 79  // the lease was lost while CMD ran
	ExitOwn      = 125 // anything else that kept Leasehold from its work
	ExitCannot   = 126 // CMD can't be executed
	ExitMissing  = 127 // CMD can't be found
	ExitSignal   = 128 // plus the number of the signal
)

// ExitError ends the program with a code, and a line of explanation if err is there.
type ExitError struct {
	Code int
	err  error
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.err.Error()
}

// Unwrap returns what is behind the exit code, if anything.
func (e *ExitError) Unwrap() error { return e.err }

// Exit returns the error that ends the program with that code.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usage returns the error of a wrong command line.
func Usage(format string, args ...any) error {
	return Exit(ExitUsage, fmt.Errorf(format, args...))
}

// SignalError is the cause of a context that a signal has ended.
type SignalError struct{ sig syscall.Signal }

// Error implements error.
func (e *SignalError) Error() string { return "interrupted: " + e.sig.String() }

// hangup is what SIGHUP does while it is set: otherwise it ends the program, as SIGTERM does.
type hangup struct{ f atomic.Pointer[func()] }

// Is has SIGHUP call f from now on.
func (h *hangup) Is(f func()) { h.f.Store(&f) }

// on does what is set, and reports whether anything is.
func (h *hangup) on(sig os.Signal) bool {
	f := h.f.Load()
	if sig != syscall.SIGHUP || f == nil {
		return false
	}
	(*f)()
	return true
}

// interruptible returns a context that ends with the first signal that asks the program to.
func interruptible(ctx context.Context, h *hangup) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := make(chan os.Signal, 1)
	keepQuitIgnored()
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) { // as nohup does
			signal.Notify(c, sig)
		}
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-c:
				if h.on(sig) {
					continue
				}
				cancel(&SignalError{sig.(syscall.Signal)})
			case <-stop:
			}
			return
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		close(stop)
		<-ended
		cancel(nil)
	}
}

// keepQuitIgnored ignores SIGQUIT, here and in what is started, if SIGINT was ignored when the
// program began. A shell without job control has both ignored by what it runs in the background. Go
// leaves an ignored SIGINT alone, but takes SIGQUIT over before any code of ours runs, and tells
// nobody what it was.
func keepQuitIgnored() {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
}

// OneLine makes one line of an error of several.
func OneLine(err error) string {
	var parts []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// Want is for commands with a fixed number of arguments, whose names are given. One in brackets may
// be left out.
func Want(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usage("%s is missing: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return Usage("%q is one argument too many: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}
