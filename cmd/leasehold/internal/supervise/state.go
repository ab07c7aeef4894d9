package supervise

import (
	"time"

	"github.com/leasehold/leasehold/clock"
)

// phase is where a supervised command stands; see the package's doc for the diagram.
type phase uint8

const (
	running phase = iota
	stopping
	killing
	gone
)

// order is what is to be done to the group now.
type order uint8

const (
	nothing order = iota
	terminate
	kill
)

// killAgain is the pause between two kills, while something is left.
const killAgain = 20 * time.Millisecond

// facts is what is known at one moment.
type facts struct {
	now    clock.Instant
	until  clock.Instant // validity of the lease; clock.Always when it has ended
	exited bool          // the command itself has ended
	gone   bool          // and nothing of it is left
}

// state decides. It knows no clock, no process and no lease, only what it is told.
type state struct {
	killAfter, slack time.Duration

	phase  phase
	lost   bool          // the lease ended, or was about to, before all was gone
	until  clock.Instant // the last validity that was known
	killAt clock.Instant // stopping, killing
}

// next returns what is to be done now, and when to look again at the latest.
func (s *state) next(f facts) (order, clock.Instant) {
	if f.until != clock.Always && s.phase != gone {
		s.until = f.until
	}
	last := s.until.Add(-s.slack) // when nothing may run any more
	late := f.until == clock.Always || f.now >= last.Add(-s.killAfter)
	if late && s.phase != gone && (!f.gone || f.now >= s.until || f.until == clock.Always) {
		s.lost = true
	}
	switch {
	case f.gone:
		s.phase = gone
		return nothing, clock.Never
	case s.phase == running && (late || f.exited):
		s.phase = stopping
		s.killAt = min(f.now.Add(s.killAfter), last)
		if f.now < s.killAt {
			return terminate, s.killAt
		}
	case s.phase == running:
		return nothing, last.Add(-s.killAfter)
	}
	s.killAt = min(s.killAt, last)
	if f.now < s.killAt {
		return nothing, s.killAt
	}
	s.phase = killing
	return kill, f.now.Add(killAgain)
}
