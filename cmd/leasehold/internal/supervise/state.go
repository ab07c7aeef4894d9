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
	until  clock.Instant // validity of the lease; clock.Ended when it has ended
	exited bool          // the command itself has ended
	gone   bool          // and nothing of it is left
	asked  bool          // it is to end, in peace
}

// state decides. It knows no clock, no process and no lease, only what it is told.
type state struct {
	killAfter, drain, slack time.Duration

	phase  phase
	lost   bool          // the lease ended, or was about to, before all was gone
	until  clock.Instant // the last validity that was known
	guard  clock.Instant // when the guard kills, as it was told last; 0 before
	killAt clock.Instant // stopping, killing
}

// next returns what is to be done now, and when to look again at the latest.
func (s *state) next(f facts) (order, clock.Instant) {
	last, late := s.hurry(f)
	order := nothing
	switch {
	case f.gone:
		s.phase = gone
		return nothing, clock.NoDeadline
	case s.phase == running && (late || f.exited || f.asked):
		s.phase, order = stopping, terminate
		s.killAt = f.now.Add(s.killAfter)
		if !late && !f.exited {
			s.killAt = f.now.Add(s.drain)
		}
	case s.phase == running:
		return nothing, last.Add(-s.killAfter)
	}
	by := min(s.killAt, last)
	if s.lost {
		s.killAt = by // no renewal that comes now gives it more time
	}
	switch {
	case f.now >= by:
		s.phase = killing
		return kill, f.now.Add(killAgain)
	case s.lost:
		return order, by
	}
	return order, min(by, last.Add(-s.killAfter))
}

// hurry returns when nothing may run any more, and whether what runs has to be told to end because
// of that. It takes note of a lease that is lost.
func (s *state) hurry(f facts) (last clock.Instant, late bool) {
	// The guard goes by what it was told last: a renewal that came after its time has spared
	// nothing.
	over := f.until == clock.Ended || s.guard != 0 && f.now >= s.guard
	if f.until != clock.Ended {
		s.until = f.until
	}
	last = s.until.Add(-s.slack)
	late = over || f.now >= last.Add(-s.killAfter)
	// What is gone late, and by itself, was in time.
	if lost := over || late && !f.gone; lost && !s.lost {
		s.lost = true
		if s.phase == stopping { // it was asked to end in peace, and that is over
			s.killAt = min(s.killAt, f.now.Add(s.killAfter))
		}
	}
	return last, late
}

// tellGuard returns a time that the guard doesn't know yet, at which it has to kill: between the
// supervisor's own kill and the end of validity. A command that is lost is given no more time.
func (s *state) tellGuard() (clock.Instant, bool) {
	by := s.until.Add(-s.slack / 2)
	if s.lost || by == s.guard {
		return 0, false
	}
	s.guard = by
	return by, true
}
