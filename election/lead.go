package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// leadership is one term, on the leader's side.
type leadership struct {
	c      *candidate
	term   Term
	ctx    context.Context // of OnStartedLeading
	cancel context.CancelCauseFunc
	// Successors that the program itself asked for: the term ends with the first.
	wishes chan string
	wish   *ballot.Order // the first
	to     string        // owner id of the successor; "" when there is to be none

	began  clock.Instant
	better clock.Instant // since when another candidate is preferred; 0 when none is
	told   bool          // to stop
	// When OnStartedLeading has to have returned, if the validity lasts so long.
	by    clock.Instant
	stuck bool // OnStopTimeout was called
}

// lead leads for one term: it calls OnStartedLeading, has it stop when it must, and lets the name
// go when it has returned.
func (c *candidate) lead(ctx context.Context, l *lease.Lease) {
	if !c.confirm(ctx, l) {
		c.letGo(ctx, l, "")
		return
	}
	s := &leadership{c: c, began: c.clk.Now(), wishes: make(chan string, 1)}
	s.term = Term{Name: c.name, Leader: l.Holder(), Token: l.Token(), lease: l, led: s}
	s.ctx, s.cancel = context.WithCancelCause(l.Context())
	defer s.cancel(nil)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		c.cb.OnStartedLeading(s.ctx, s.term)
	}()
	s.oversee(ctx, returned)
	if c.cb.OnStoppedLeading != nil {
		c.cb.OnStoppedLeading()
	}
	c.letGo(ctx, l, s.to)
	if s.to == "" && (!s.told || errors.Is(context.Cause(s.ctx), ErrOrdered)) {
		c.yield(ctx, l.Token())
	}
	switch lasted := c.clk.Now().Sub(s.began); {
	case lasted >= c.m.TTL():
		c.lastRest = 0
	case !s.told:
		c.rest(ctx)
	}
}

// rest blocks after a short term that ended by itself: who crashes as soon as it leads would
// otherwise be leader again and again, and be preferred to candidates that can lead.
func (c *candidate) rest(ctx context.Context) {
	c.lastRest = min(max(2*c.lastRest, c.m.TTL()/100), 4*c.m.TTL())
	change := func(resting bool) {
		c.resting.Store(resting)
		select {
		case c.relist <- struct{}{}:
		default: // it is to look again already
		}
	}
	change(true)
	_ = clock.Sleep(ctx, c.clk, c.lastRest)
	change(false)
	eligible := c.ask()
	c.set(func() { c.now.eligible = eligible })
}

// confirm reads the control record again, for what was written to it before the name was taken:
// whoever has paused the election and seen that nobody leads can rely on that. And it waits for a
// renewal when the validity is about to end: there is no point in a term that ends as it begins,
// and then in the next. It blocks until that is so, or the lease has ended.
func (c *candidate) confirm(ctx context.Context, l *lease.Lease) bool {
	held := l.Context()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(held, cancel)()
	for l.Check() == nil && ctx.Err() == nil {
		limited, done := clock.WithTimeout(ctx, c.clk, c.m.TTL()/3)
		err := c.refresh(limited)
		done()
		switch {
		case err == nil && !c.look().mayLead():
			return false
		case err == nil && c.clk.Now() < l.ValidUntil().Add(-c.opts.StopMargin):
			return true
		}
		_ = clock.Sleep(ctx, c.clk, c.m.TTL()/30)
	}
	return false
}

// oversee blocks until OnStartedLeading has returned, however long that takes: what it does may
// still be going on. It cancels its context when it has to stop, and calls OnStopTimeout when it
// doesn't.
func (s *leadership) oversee(ctx context.Context, returned <-chan struct{}) {
	for {
		o, now := s.c.look(), s.c.clk.Now()
		next := s.stopIfNeeded(ctx, o, now)
		if s.told {
			next = s.escalate(now)
		}
		if !s.await(returned, o.changed, ctx.Done(), next) {
			return
		}
	}
}

// stopIfNeeded tells OnStartedLeading to stop if there is a cause to. It returns when to look again
// at the latest.
func (s *leadership) stopIfNeeded(ctx context.Context, o outlook, now clock.Instant) clock.Instant {
	expiring := s.term.lease.ValidUntil().Add(-s.c.opts.StopMargin)
	next := min(now.Add(s.c.m.TTL()/3), expiring)
	ordered := o.Order
	if s.wish != nil {
		ordered = s.wish
	}
	var cause error
	switch {
	case s.told:
	case s.ctx.Err() != nil: // the lease is lost
		cause = context.Cause(s.ctx)
	case now >= expiring:
		cause = ErrExpiring
	case ctx.Err() != nil:
		cause = context.Cause(ctx)
	case o.Pause != nil:
		cause = fmt.Errorf("%w by %s", ErrPaused, *o.Pause)
	case ordered != nil && ordered.Token == s.term.Token:
		cause, s.to = fmt.Errorf("%w: %s", ErrOrdered, ordered.By), ordered.To
	case !o.eligible:
		cause = ErrNotEligible
	default:
		best, due := s.givesWay(o.Ballot, now)
		if best != "" {
			cause, s.to = ErrPreferred, best
		}
		next = min(next, due)
	}
	if cause != nil {
		s.cancel(cause)
		s.told, s.by = true, now.Add(s.c.opts.StopWithin)
		if s.c.cb.OnStopping != nil {
			s.c.cb.OnStopping(s.term, cause)
		}
	}
	return next
}

// escalate calls OnStopTimeout when it is time, once. It returns when that is.
func (s *leadership) escalate(now clock.Instant) clock.Instant {
	if s.stuck {
		return clock.NoDeadline
	}
	// Whatever it was told to stop for, the end of validity is the end.
	due := min(s.by, s.term.lease.ValidUntil().Add(-s.c.opts.StopMargin/3))
	if now < due {
		return due
	}
	s.stuck = true
	if s.c.cb.OnStopTimeout != nil {
		s.c.cb.OnStopTimeout(s.term, context.Cause(s.ctx))
	}
	return clock.NoDeadline
}

// await waits until something happens, or until next. It returns false when OnStartedLeading has
// returned. Once it was told to stop, only the time counts, and that it returns.
func (s *leadership) await(returned, changed, done <-chan struct{}, next clock.Instant) bool {
	ended, wishes := s.ctx.Done(), s.wishes
	if s.told {
		changed, done, ended, wishes = nil, nil, nil, nil
	}
	var due <-chan struct{}
	if next != clock.NoDeadline {
		timer := clock.NewTimer(s.c.clk, max(next.Sub(s.c.clk.Now()), time.Millisecond))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-returned:
		return false
	case to := <-wishes:
		s.wish = &ballot.Order{Token: s.term.Token, To: to, By: "its own wish"}
	case <-changed:
	case <-done:
	case <-ended:
	case <-due:
	}
	return true
}

// givesWay returns the owner id of a candidate to give way to now, or "" and when to ask again.
func (s *leadership) givesWay(b ballot.Ballot, now clock.Instant) (to string, due clock.Instant) {
	due = clock.NoDeadline
	best, preferred := s.c.opts.preferred(b, s.c.session.Key())
	f := s.c.opts.FailBack
	if !preferred || f.After == 0 && f.Idle == nil {
		s.better = 0
		return "", due
	}
	if s.better == 0 {
		s.better = now
	}
	if held := s.began.Add(s.c.opts.MinHold); now < held {
		return "", held
	}
	if f.After > 0 {
		due = s.better.Add(f.After)
	}
	if now >= due || f.Idle != nil && f.Idle() {
		return best.Owner(), due
	}
	return "", due
}

// letGo releases the name, or hands it over, in a bounded time whatever ctx says. A hand-over that
// fails is a release.
func (c *candidate) letGo(ctx context.Context, l *lease.Lease, to string) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.clk, c.m.TTL()/3)
	defer cancel()
	if to != "" && to != l.Holder() && l.Check() == nil {
		if l.HandOver(ctx, to) == nil {
			return
		}
	}
	_ = l.Release(ctx) // otherwise the session's end frees it
}

// yield lets another candidate take the name first, if there is one that may: it waits until
// somebody has, since the term of token, for a third of the TTL at most.
func (c *candidate) yield(ctx context.Context, token fence.Token) {
	ctx, cancel := clock.WithTimeout(ctx, c.clk, c.m.TTL()/3)
	defer cancel()
	if c.refresh(ctx) != nil || !c.look().Others(c.session.Key()) {
		return
	}
	rec, err := store.Load(ctx, c.m.Store(), c.name)
	// Two that yield must not wait for each other.
	for err == nil && rec.Owner == "" && rec.Token == token {
		rec, err = store.Wait(ctx, c.m.Store(), c.name, rec.Version)
	}
}
