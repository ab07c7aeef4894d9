package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Holding is what a [Watchdog] watches: a *[Lease], a *[Session], a hold of package lock.
type Holding interface {
	Check() error
	Context() context.Context
}

// exitLost is the exit code of a process that a watchdog ends; that of leasehold run for a lease
// that was lost.
const exitLost = 79

// Watchdog watches h until h ends. onLost is called, with the *[LostError], if h is lost: if its
// validity ends, by the manager's clock, before h is released or handed over. onLost is called
// once, in a goroutine of its own, and may block.
//
// A nil onLost ends the process, at once, with exit code 79 and a line on standard error; no
// deferred function runs. A nil onLost is for work that ignores its context. The process stops
// TTL·Margin before others may take the name. [Options.Margin] is the time that the process has to
// stop in.
//
// Releasing h ends the watchdog without a call. stop ends the watchdog before, and returns whether
// it did: false when h had ended. Closing the manager while h is held is a loss, since work may be
// running. So release h or call stop first. h may have ended before Watchdog is called.
//
// A watchdog runs when its process does. While the process is stopped (SIGSTOP, a suspended
// machine, no processor), the watchdog does nothing. After that, other goroutines may run before
// it. They may do so at most for some milliseconds after a stop, and for the five seconds of
// [clock.System] after a suspension. The watchdog doesn't call back a request that was sent. Only
// the token protects against those requests.
func Watchdog(h Holding, onLost func(error)) (stop func() bool) {
	if onLost == nil {
		onLost = exit
	}
	return context.AfterFunc(h.Context(), func() {
		if err := h.Check(); errors.Is(err, ErrLost) {
			onLost(err)
		}
	})
}

func exit(err error) {
	fmt.Fprintf(os.Stderr, "leasehold: watchdog: %v: ending the process\n", err)
	os.Exit(exitLost)
}
