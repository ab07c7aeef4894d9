package flake

import "time"

// Window is the span of time that a generator may use in ids: [Floor, Ceiling). The grantor of
// windows for a node's number stores the ceiling before a Window returns it. The next window of
// that number begins there. Both methods are called from any goroutine, and must not block.
type Window interface {
	// Floor never changes.
	Floor() time.Time
	// Ceiling may rise at any moment, and never falls.
	Ceiling() time.Time
}

// Clock is an optional extension of a [Window]. It returns a better time for ids than the machine's
// clock, which somebody may set. A generator takes its time from a Clock, unless [Options] name
// another source.
type Clock interface {
	Window
	// Now is called from any goroutine, and must not block.
	Now() time.Time
}

// FixedWindow returns a window that never moves. It is for a node's number that one process has for
// good, or until the number is assigned to another. The floor of each process has to be later than
// all times that the process before it used. A process that ends abruptly may have been
// [Options.MaxAhead] ahead of its clock.
func FixedWindow(floor, ceiling time.Time) Window { return fixedWindow{floor, ceiling} }

type fixedWindow struct{ floor, ceiling time.Time }

func (b fixedWindow) Floor() time.Time   { return b.floor }
func (b fixedWindow) Ceiling() time.Time { return b.ceiling }
