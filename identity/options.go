package identity

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of a claim. The zero value claims any value of a pool that is declared.
type Options struct {
	// Values of the pool. The first claim declares them; after that they have to be the same, or
	// none.
	Values Values

	// Layout is the layout of the ids that are made with the values. The zero Layout names none.
	// The pool keeps the layout of the first claim that names one. After that, a claim with another
	// layout is an error that matches [ErrMismatch], because ids of two layouts can be alike,
	// whatever their numbers are.
	Layout flake.Layout

	// As is the name of the instance that claims. It gets the value that it had before, if no other
	// has got that meanwhile. "" is an instance without a name.
	Name string

	// NoWait has a claim fail with a *[lease.HeldError], at once, while the value that the name had
	// is held under that same name.
	NoWait bool

	// Window is how far the ceiling is ahead of the clock when it is stored, from 1 s to 30 days.
	// The default is the TTL of the session's manager. For an assignment, which no process extends,
	// it is 2 min.
	//
	// The ceiling is stored again when half of that is left, which is one write for each half of a
	// window. After a crash, the next holder of the value may have to wait that long before it can
	// make ids: with the default, until the TTL is over.
	Window time.Duration
}

// orSystem returns the clock of options, which name none by default.
func orSystem(clk clock.Clock) clock.Clock {
	if clk == nil {
		return clock.System()
	}
	return clk
}

const (
	// Of an assignment, and how late a window may begin that a claim takes.
	defaultWindow = 2 * time.Minute
	minWindow     = time.Second
	maxWindow     = 30 * 24 * time.Hour
)

func (o Options) check(pool string) error {
	if pool == "" {
		return fmt.Errorf("pool %q: want a name of at least one character", pool)
	}
	if err := driver.CheckKey(poolKey(pool)); err != nil {
		return fmt.Errorf("pool %.60q: %w", pool, err)
	}
	if o.Name != "" {
		if err := driver.CheckKey(nameKey(pool, o.Name)); err != nil {
			return fmt.Errorf("instance name %.60q: %w", o.Name, err)
		}
	}
	if o.Window != 0 && (o.Window < minWindow || o.Window > maxWindow) {
		return fmt.Errorf("option Window %v: want %v to %v", o.Window, minWindow, maxWindow)
	}
	return nil
}
