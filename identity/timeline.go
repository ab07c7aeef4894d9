package identity

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// timeline is the time that ids of a hold have. It is the wall clock's until that is set.
//
// A clock that is set back, and remains so, would stop ids for as long: their times never fall. So
// the timeline continues where it was, a part slower than the clock that no one sets, until the
// wall clock has caught up. A clock that is set forward beyond the ceiling would stop them until a
// higher ceiling is stored: the timeline continues as if nothing had happened until that is done.
// Neither can make an id twice: which times a hold may stamp, its window says.
type timeline struct {
	clk clock.Clock

	mu   sync.Mutex
	at   clock.Instant // of the last look
	last time.Time     // what it showed
}

const (
	// slower is which part of the time the timeline loses while it is ahead of the wall clock: an
	// hour is made up for in eight.
	slower = 8
	// maxAstray is how far the timeline may be ahead of the wall clock. A clock that is set back by
	// more was so wrong that no more ids with such times are wanted.
	maxAstray = 24 * time.Hour
)

func newTimeline(clk clock.Clock) *timeline {
	return &timeline{clk: clk, at: clk.Now(), last: clk.Wall()}
}

// look returns the time for ids up to a ceiling, and the one that the ceiling has to be raised for.
func (t *timeline) look(ceiling time.Time) (now, wanted time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, wall := t.clk.Now(), t.clk.Wall()
	passed := at.Sub(t.at)
	steady := t.last.Add(passed)
	now, wanted = wall, wall
	switch {
	case t.last.Add(passed-passed/slower).Sub(wall) > maxAstray:
	case wall.Before(steady):
		if slowed := t.last.Add(passed - passed/slower); slowed.After(wall) {
			now, wanted = slowed, slowed
		}
	case !wall.Before(ceiling) && steady.Before(ceiling):
		now = steady
	}
	t.at, t.last = at, now
	return now, wanted
}
