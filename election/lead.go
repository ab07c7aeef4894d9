package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
)

// lead leads for one term: it calls OnStartedLeading, has it stop when it must, and lets the name go when it has returned.
func (c *candidate) lead(ctx context.Context, l *lease.Lease) {
	term := Term{Name: c.name, Leader: l.Owner(), Token: l.Token(), lease: l}
	leading, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		c.cb.OnStartedLeading(leading, term)
	}()
	to := c.oversee(ctx, leading, cancel, term, returned)
	if c.cb.OnStoppedLeading != nil {
		c.cb.OnStoppedLeading()
	}
	c.letGo(ctx, l, to)
	if to == "" && errors.Is(context.Cause(leading), ErrOrdered) {
		_ = clock.Sleep(ctx, c.clk, c.m.TTL()/10) // the others first
	}
}

// oversee blocks until OnStartedLeading has returned, however long that takes: what it does may still be going on. It cancels its context when it has to stop, and calls OnStuck when it
// doesn't. It returns the owner id of a successor, if there is to be one.
func (c *candidate) oversee(ctx, leading context.Context, cancel context.CancelCauseFunc, term Term, returned <-chan struct{}) (to string) {
	began := c.clk.Now()
	var better clock.Instant // since when another candidate is preferred; 0 when none is
	var stuckAt clock.Instant
	for {
		k, eligible, changed := c.look()
		now := c.clk.Now()
		expiring := term.lease.ValidUntil().Add(-c.opts.StopMargin)
		next := min(now.Add(c.m.TTL()/3), expiring)
		var cause error
		switch {
		case leading.Err() != nil: // it was told
		case now >= expiring:
			cause = ErrExpiring
		case ctx.Err() != nil:
			cause = context.Cause(ctx)
		case k.Pause != nil:
			cause = fmt.Errorf("%w by %s: %s", ErrPaused, k.Pause.By, k.Pause.Reason)
		case k.Order != nil && k.Order.Token == term.Token:
			cause, to = fmt.Errorf("%w: %s", ErrOrdered, k.Order.By), k.Order.To
		case !eligible:
			cause = ErrNotEligible
		default:
			best, due := c.givesWay(k, &better, began, now)
			if best != "" {
				cause, to = ErrPreferred, best
			}
			next = min(next, due)
		}
		if cause != nil {
			cancel(cause)
		}
		if leading.Err() != nil && stuckAt != clock.Never {
			if stuckAt == 0 {
				stuckAt = c.patience(term, now, errors.Is(context.Cause(leading), ErrExpiring))
			}
			// Whatever it was told to stop for, the end of validity is the end.
			stuckAt = min(stuckAt, c.patience(term, now, true))
			if next = stuckAt; now >= stuckAt {
				stuckAt, next = clock.Never, clock.Never
				if c.cb.OnStuck != nil {
					c.cb.OnStuck(term, context.Cause(leading))
				}
			}
		}
		if !c.await(returned, changed, ctx.Done(), leading.Done(), next) {
			return to
		}
	}
}

// patience returns when OnStuck is called.
func (c *candidate) patience(term Term, now clock.Instant, expiring bool) clock.Instant {
	if expiring {
		return term.lease.ValidUntil().Add(-c.opts.StopMargin / 3)
	}
	return now.Add(c.opts.StopWithin)
}

// await waits until something happens, or until next. It returns false when OnStartedLeading has returned. What has happened
// already is not waited for again.
func (c *candidate) await(returned, changed, done, leading <-chan struct{}, next clock.Instant) bool {
	select {
	case <-leading:
		done, leading = nil, nil
	default:
	}
	var due <-chan struct{}
	if next != clock.Never {
		timer := clock.NewTimer(c.clk, max(next.Sub(c.clk.Now()), time.Millisecond))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-returned:
		return false
	case <-changed:
	case <-done:
	case <-leading:
	case <-due:
	}
	return true
}

// givesWay returns the owner id of a candidate to give way to now, or "" and when to ask again.
func (c *candidate) givesWay(k control, better *clock.Instant, began, now clock.Instant) (to string, due clock.Instant) {
	due = clock.Never
	best, preferred := c.opts.preferred(k, c.session.Key())
	f := c.opts.FailBack
	if !preferred || f.After == 0 && f.Idle == nil {
		*better = 0
		return "", due
	}
	if *better == 0 {
		*better = now
	}
	if held := began.Add(c.opts.MinHold); now < held {
		return "", held
	}
	if f.After > 0 {
		due = better.Add(f.After)
	}
	if now >= due || f.Idle != nil && f.Idle() {
		return best.Owner(), due
	}
	return "", due
}

// letGo releases the name, or hands it over, in a bounded time whatever ctx says. A hand-over that fails is a release.
func (c *candidate) letGo(ctx context.Context, l *lease.Lease, to string) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.clk, c.m.TTL()/3)
	defer cancel()
	if to != "" && to != l.Owner() && l.Check() == nil {
		if l.HandOver(ctx, to) == nil {
			return
		}
	}
	_ = l.Release(ctx) // otherwise the session's end frees it
}
