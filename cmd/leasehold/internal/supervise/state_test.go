package supervise

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

const sec = clock.Instant(time.Second)

// A command of a lease that is valid until 16 s, with 2 s to end, 10 s in peace, and 500 ms of slack: terminate at 13.5, kill at
// 15.5.
func newState() *state {
	return &state{killAfter: 2 * time.Second, drain: 10 * time.Second, slack: 500 * time.Millisecond, until: 16 * sec}
}

func TestStateSteps(t *testing.T) {
	type step struct {
		f     facts
		order order
		again clock.Instant
	}
	const half = sec / 2
	for _, c := range []struct {
		name  string
		steps []step
		lost  bool
	}{
		{"nothing to do", []step{
			{facts{now: 0, until: 16 * sec}, nothing, 13*sec + half},
			{facts{now: 13*sec + half, until: 21 * sec}, nothing, 18*sec + half}, // renewed meanwhile
			{facts{now: 14 * sec, until: 21 * sec, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, false},
		{"not renewed", []step{
			{facts{now: 13*sec + half, until: 16 * sec}, terminate, 15*sec + half},
			{facts{now: 15 * sec, until: 16 * sec}, nothing, 15*sec + half},
			{facts{now: 15*sec + half, until: 16 * sec}, kill, 15*sec + half + clock.Instant(killAgain)},
			{facts{now: 15*sec + half + 1, until: 16 * sec}, kill, 15*sec + half + 1 + clock.Instant(killAgain)},
			{facts{now: 15*sec + half + 2, until: 16 * sec, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, true},
		{"renewed too late to be spared", []step{
			{facts{now: 13*sec + half, until: 16 * sec}, terminate, 15*sec + half},
			{facts{now: 14 * sec, until: 30 * sec}, nothing, 15*sec + half},
			{facts{now: 15*sec + half, until: 30 * sec}, kill, 15*sec + half + clock.Instant(killAgain)},
		}, true},
		{"broken", []step{
			{facts{now: 5 * sec, until: clock.Ended}, terminate, 7 * sec},
			{facts{now: 7 * sec, until: clock.Ended}, kill, 7*sec + clock.Instant(killAgain)},
		}, true},
		{"broken shortly before it would have been terminated", []step{
			{facts{now: 13 * sec, until: 16 * sec}, nothing, 13*sec + half},
			{facts{now: 13*sec + half - 1, until: clock.Ended}, terminate, 15*sec + half - 1},
		}, true},
		{"this process was paused past it all", []step{
			{facts{now: 60 * sec, until: clock.Ended}, kill, 60*sec + clock.Instant(killAgain)},
		}, true},
		{"ended while this process was paused", []step{
			{facts{now: 10 * sec, until: 16 * sec}, nothing, 13*sec + half},
			{facts{now: 60 * sec, until: 16 * sec, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, true},
		{"killed by the guard, perhaps, while this process was paused", []step{
			{facts{now: 10 * sec, until: 16 * sec}, nothing, 13*sec + half},
			{facts{now: 15*sec + half + half/2, until: 31 * sec, gone: true}, nothing, clock.NoDeadline}, // renewed first thing
		}, true},
		{"ended by itself just before the guard", []step{
			{facts{now: 10 * sec, until: 16 * sec}, nothing, 13*sec + half},
			{facts{now: 15*sec + half, until: 16 * sec, gone: true}, nothing, clock.NoDeadline},
		}, false},
		{"ended late, but in time", []step{
			{facts{now: 14 * sec, until: 16 * sec, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, false},
		{"leaves something behind", []step{
			{facts{now: 3 * sec, until: 16 * sec, exited: true}, terminate, 5 * sec},
			{facts{now: 5 * sec, until: 20 * sec, exited: true}, kill, 5*sec + clock.Instant(killAgain)},
			{facts{now: 6 * sec, until: 20 * sec, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, false},
		{"asked to end", []step{
			{facts{now: 5 * sec, until: 16 * sec, asked: true}, terminate, 13*sec + half},
			{facts{now: 13*sec + half, until: 25 * sec, asked: true}, nothing, 15 * sec},
			{facts{now: 15 * sec, until: 25 * sec, asked: true}, kill, 15*sec + clock.Instant(killAgain)},
			{facts{now: 16 * sec, until: 25 * sec, asked: true, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, false},
		{"asked to end, and not renewed", []step{
			{facts{now: 10 * sec, until: 16 * sec, asked: true}, terminate, 13*sec + half},
			{facts{now: 13*sec + half, until: 16 * sec, asked: true}, nothing, 15*sec + half},
			{facts{now: 15*sec + half, until: 16 * sec, asked: true}, kill, 15*sec + half + clock.Instant(killAgain)},
		}, true},
		{"asked to end, and lost", []step{
			{facts{now: 3 * sec, until: 16 * sec, asked: true}, terminate, 13 * sec},
			{facts{now: 4 * sec, until: clock.Ended, asked: true}, nothing, 6 * sec},
			{facts{now: 5 * sec, until: clock.Ended, asked: true}, nothing, 6 * sec},
			{facts{now: 6 * sec, until: clock.Ended, asked: true}, kill, 6*sec + clock.Instant(killAgain)},
		}, true},
		{"lost while what it left behind ends", []step{
			{facts{now: 3 * sec, until: 16 * sec, exited: true}, terminate, 5 * sec},
			{facts{now: 4 * sec, until: clock.Ended, exited: true}, nothing, 5 * sec},
			{facts{now: 4*sec + half, until: clock.Ended, exited: true, gone: true}, nothing, clock.NoDeadline},
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState()
			for i, step := range c.steps {
				order, again := s.next(step.f)
				s.tellGuard()
				if order != step.order || again != step.again {
					t.Errorf("step %d: order %d, again at %v; want %d, %v", i, order, again, step.order, step.again)
				}
			}
			if s.lost != c.lost {
				t.Errorf("lost is %v, want %v", s.lost, c.lost)
			}
		})
	}
}
