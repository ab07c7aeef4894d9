package flake

import (
	"errors"
	"fmt"
	"time"
)

// ErrStopped is the error of a generator after [Generator.Stop].
var ErrStopped = errors.New("the generator was stopped")

// WindowError reports that the next id's time is at the end of the window, or past it. It ends when
// the ceiling is raised.
type WindowError struct {
	Node           uint64
	Floor, Ceiling time.Time
	At             time.Time // the time that the id would have had
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("node %d may make ids of %s up to %s, and the next would be of %s: have the window extended",
		e.Node, stamp(e.Floor), stamp(e.Ceiling), stamp(e.At))
}

// AheadError reports that an id would have been too far ahead of the clock, and that the allowed
// wait was too short. It ends when the clock has caught up.
type AheadError struct {
	Ahead time.Duration // how far the id would have been ahead
	Max   time.Duration // Options.MaxAhead
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("the next id would be %v ahead of the clock, and %v is the most that is allowed: the clock was set back, "+
		"the window begins later, or ids are taken faster than the layout has room for", e.Ahead, e.Max)
}

// ExhaustedError reports that a layout has no time left.
type ExhaustedError struct {
	Layout string
	Since  time.Time
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("the layout %s has had no time left since %s: use another", e.Layout, stamp(e.Since))
}

// OverflowError reports that a part of an id doesn't fit into its bits.
type OverflowError struct {
	Layout string
	Part   Part
	Value  string
	Bits   int
}

func (e *OverflowError) Error() string {
	text := fmt.Sprintf("%v %s doesn't fit: the layout %s has %d bits for it", e.Part, e.Value, e.Layout, e.Bits)
	if e.Part == Time || e.Bits == 0 {
		return text
	}
	return fmt.Sprintf("%s, so %d is the highest", text, uint64(1)<<e.Bits-1)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
