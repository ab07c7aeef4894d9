package supervise

import (
	"context"

	"github.com/leasehold/leasehold/clock"
)

// Lease is what has to be known of a lease. A *lease.Lease is one.
type Lease interface {
	ValidUntil() clock.Instant // clock.Ended when it has ended
	Context() context.Context  // done when it has ended
}

// Work is what runs under a lease. None of its methods blocks.
type Work interface {
	Terminate() // asks all of it to end
	Kill()      // kills what there is of it; may be called again
	// Sees to it that all of it is killed at t, unless a later t is named by then.
	KillBy(t clock.Instant)
	Exited() <-chan struct{} // closed when the command itself has ended, and left something behind
	Gone() <-chan struct{}   // closed when nothing of it is left

	// Unguarded returns a channel that is closed when nothing would end w in time if this process
	// didn't: w is asked to end then.
	Unguarded() <-chan struct{}
}

// Notice tells the user what was done, and why.
type Notice uint8

// The notices.
const (
	Terminated Notice = iota // all of it, because the lease ends, or has ended
	Leftovers                // what the command has left behind
	Killed                   // what has not ended when told to
	Asked                    // all of it, because it is to end
	NoGuard                  // all of it, because no guard process is left
)

// Watch keeps w from outliving l, whose validity is measured on clk. It blocks until nothing of w
// is left, and reports whether the lease was lost before that. It calls tell, which must not block,
// with what it does.
func Watch(l Lease, w Work, t Timing, clk clock.Clock, tell func(Notice)) (lost bool) {
	return WatchUntil(nil, l, w, t, clk, tell)
}

// WatchUntil is Watch, and has w end in peace when asked is closed: it is killed if it has not
// ended when t.Drain is over, or before, when the validity is about to be.
func WatchUntil(asked <-chan struct{}, l Lease, w Work, t Timing, clk clock.Clock, tell func(Notice)) (lost bool) {
	s := state{killAfter: t.KillAfter, drain: t.Drain, slack: t.Slack(), until: l.ValidUntil()}
	held := l.Context().Done()
	exited := w.Exited()
	ask, unguarded := asked, w.Unguarded()
	for {
		f := facts{now: clk.Now(), until: l.ValidUntil(), exited: closed(w.Exited()), gone: closed(w.Gone()), asked: closed(asked) || closed(w.Unguarded())}
		before := s.phase
		order, again := s.next(f)
		if by, news := s.tellGuard(); news {
			w.KillBy(by)
		}
		switch {
		case order == terminate:
			w.Terminate()
			tell(reason(s.lost, f.exited, closed(w.Unguarded())))
		case order == kill:
			w.Kill()
			if before != killing {
				tell(Killed)
			}
		}
		if s.phase == gone {
			return s.lost
		}
		if f.exited {
			exited = nil
		}
		if f.asked {
			ask, unguarded = nil, nil
		}
		if f.until == clock.Ended {
			held = nil
		}
		timer := clock.NewTimer(clk, again.Sub(f.now))
		select {
		case <-w.Gone():
		case <-exited:
		case <-ask:
		case <-unguarded:
		case <-held:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func reason(lost, exited, unguarded bool) Notice {
	switch {
	case lost:
		return Terminated
	case exited:
		return Leftovers
	case unguarded:
		return NoGuard
	}
	return Asked
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
