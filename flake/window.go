package flake

import "time"

// Window is the time that a generator may stamp: [Floor, Ceiling). Whoever grants windows for a node's number stores the ceiling
// before it is told here, and lets the next window of that number begin there. Both methods are called from any goroutine,
// and must not block.
type Window interface {
	// Floor never changes.
	Floor() time.Time
	// Ceiling may rise at any moment, and never falls.
	Ceiling() time.Time
}

// Clock is the optional extra of a [Window] that knows the time for its ids better than the machine's clock, which somebody may set:
// it is where a generator's time comes from, unless [Options] name another source.
type Clock interface {
	Window
	// Now is called from any goroutine, and must not block.
	Now() time.Time
}

// FixedWindow returns a window that never moves: for a node's number that one process has for good, or until it is assigned anew. The
// floor of each process has to be later than all that the one before it stamped: a process that ends abruptly may have been
// [Options.MaxAhead] ahead of its clock.
func FixedWindow(floor, ceiling time.Time) Window { return fixedWindow{floor, ceiling} }

type fixedWindow struct{ floor, ceiling time.Time }

func (b fixedWindow) Floor() time.Time   { return b.floor }
func (b fixedWindow) Ceiling() time.Time { return b.ceiling }
