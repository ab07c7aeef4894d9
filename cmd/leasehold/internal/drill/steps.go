package drill

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
)

// The names of the steps.
const (
	Switchover = "switchover" // planned, to the instance that stands by
	Back       = "back"       // planned, back again
	Kill       = "kill"       // of the active instance
	Partition  = "partition"  // of the active instance's Region from everything else
	Store      = "store"      // unreachable for the active instance only
	Hold       = "hold"       // of all instances, by an operator
)

// step is one kind of fault.
type step struct {
	name   string
	fault  bool // it needs a Fault
	what   string
	hit    string
	outage func(admiral.Config) time.Duration // nobody serves for this long at most
	do     func(r *run, ctx context.Context, p pair, res *Result) error
}

func takeover(c admiral.Config) time.Duration { return c.TTL() + c.WaitTime }

func planned(admiral.Config) time.Duration { return 0 }

var allSteps = []step{
	{Switchover, false, "ask the active instance to hand over to the other one", "users, until the work has stopped on one side and started on the other", planned, (*run).switchover},
	{Back, false, "ask it to hand over back", "users, until the work has stopped on one side and started on the other", planned, (*run).switchover},
	{Kill, true, "kill the active instance", "users, until the other instance takes over", takeover, (*run).faulty},
	{Partition, true, "cut the Region of the active instance off", "users, until the other instance takes over", takeover, (*run).faulty},
	{Store, true, "make the store unreachable for the active instance", "users, from the end of its validity until the other instance takes over", takeover, (*run).faulty},
	{Hold, false, "hold every instance passive, and resume", "users, from its next renewal until the hold is over", func(c admiral.Config) time.Duration { return takeover(c) + c.WaitTime }, (*run).hold},
}

// Steps returns the names of all steps, in the order in which a drill has them.
func Steps() []string {
	var all []string
	for _, s := range allSteps {
		all = append(all, s.name)
	}
	return all
}

func stepOf(name string) step {
	for _, s := range allSteps {
		if s.name == name {
			return s
		}
	}
	return step{}
}

// stepLasts is how long a step may take, with its undoing and until all instances stand as before.
func (d *Drill) stepLasts(name string) time.Duration {
	s := stepOf(name)
	lasts := s.outage(d.Operator.Config) + d.Operator.Config.WaitTime + d.Looks + 10*time.Second
	if s.fault {
		lasts += d.Operator.Config.TTL() + d.Operator.Config.WaitTime
	}
	return lasts
}

// lasts is how long all steps may take once.
func (d *Drill) lasts() (all time.Duration) {
	for _, name := range d.Steps {
		all += d.stepLasts(name)
	}
	return all
}

// run is one Run of a drill.
type run struct {
	d      *Drill
	start  pair
	book   *book
	undo   undoing
	report Report
}

// steps does every step, as long as none fails.
func (r *run) steps(ctx context.Context) {
	why := ""
	for n := range r.d.Runs {
		for _, name := range r.d.Steps {
			res := Result{Step: name, Run: n + 1, From: r.now()}
			if why == "" && ctx.Err() != nil {
				why = "the drill was interrupted: " + context.Cause(ctx).Error()
			}
			if why == "" {
				if err := r.d.fits(r.d.stepLasts(name)); err != nil {
					why = err.Error()
				}
			}
			if why != "" {
				res.Skipped = why
			} else if err := r.step(ctx, &res); err != nil {
				res.Failed, why = err.Error(), "an earlier step failed"
				if ctx.Err() != nil {
					res.Failed, why = "interrupted: "+err.Error(), "the drill was interrupted"
				}
				r.d.event("%s: FAILED: %s", name, res.Failed)
			}
			res.Until = r.now()
			r.report.Steps = append(r.report.Steps, res)
		}
	}
}

func (r *run) now() float64 { return r.d.Clock.Now().Sub(r.d.began).Seconds() }

// step does one step and undoes it.
func (r *run) step(ctx context.Context, res *Result) error {
	s := stepOf(res.Step)
	p, err := r.settled(ctx)
	if err != nil {
		return err
	}
	res.Hit, res.To = p.active, p.other
	r.d.event("%s: %s (%s is active)", s.name, s.what, p.active.Pod)
	from, depth := r.d.Clock.Now(), len(r.undo.changes)
	err = s.do(r, ctx, p, res)
	for len(r.undo.changes) > depth {
		err = errors.Join(err, r.undo.last(ctx, r.d))
	}
	if err == nil {
		_, err = r.settled(ctx)
	}
	res.Outage = r.book.outage(from, r.d.Clock.Now(), r.d.Service != nil).Seconds()
	return err
}

// settled waits until one instance is active and the other stands by.
func (r *run) settled(ctx context.Context) (pair, error) {
	limited, cancel := clock.WithTimeout(ctx, r.d.Clock, r.d.settleLimit())
	defer cancel()
	for {
		p, problem, err := r.d.roll(limited)
		if err == nil && problem == nil {
			return p, nil
		}
		if limited.Err() != nil {
			return p, fmt.Errorf("the instances do not stand as before after %v: %w", r.d.settleLimit(), errors.Join(problem, err))
		}
		_ = clock.Sleep(limited, r.d.Clock, r.d.Every)
	}
}

// takes waits until side serves, and notes how long that took since from.
func (r *run) takes(ctx context.Context, res *Result, side Side, from clock.Instant, limit time.Duration) error {
	limited, cancel := clock.WithTimeout(ctx, r.d.Clock, limit)
	defer cancel()
	holds := clock.NoDeadline // when the row was first seen to be side's
	for {
		if last, ok := r.book.last(); ok && last.sent >= from && last.pod == side.Pod && !last.handed {
			holds = min(holds, last.answered)
		}
		switch {
		case r.d.Sides[side.Pod] != nil:
			if s, ok := r.book.accepted(side.Pod, from); ok {
				return r.took(res, side, s.answered.Sub(from))
			}
		case holds == clock.NoDeadline:
		default:
			if s, ok := r.book.accepted(service, holds); ok {
				return r.took(res, side, s.answered.Sub(from))
			}
		}
		if clock.Sleep(limited, r.d.Clock, r.d.Every/2) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s has not served within %v", side.Pod, limit)
		}
	}
}

func (r *run) took(res *Result, side Side, d time.Duration) error {
	res.RTO = d.Seconds()
	r.d.event("%s serves, after %.2f s", side.Pod, res.RTO)
	return nil
}

func (r *run) switchover(ctx context.Context, p pair, res *Result) error {
	from, limit := r.d.Clock.Now(), r.d.settleLimit()
	if _, err := r.d.Operator.Switchover(ctx, p.other.Pod, limit); err != nil {
		return err
	}
	return r.takes(ctx, res, p.other, from, limit)
}

// faulty makes a fault, waits until the other side serves, and a while longer for writes of the
// wrong side.
func (r *run) faulty(ctx context.Context, p pair, res *Result) error {
	f := r.d.Faults[res.Step]
	// How long a takeover takes depends on when the last renewal was: meet any moment between two.
	if err := clock.Sleep(ctx, r.d.Clock, mathrand.N(r.d.Operator.Config.WaitTime)); err != nil {
		return err
	}
	r.undo.add(change{
		what: fmt.Sprintf("%s of %s", res.Step, p.active.Pod), by: f.Back,
		do: func(ctx context.Context) error { return f.Undo(ctx, res.Step, p.active) },
	})
	from := r.d.Clock.Now()
	limited, cancel := clock.WithTimeout(ctx, r.d.Clock, r.d.Limit)
	err := f.Do(limited, res.Step, p.active)
	cancel()
	if err != nil {
		return err
	}
	if err := r.takes(ctx, res, p.other, from, r.d.settleLimit()); err != nil {
		return err
	}
	return clock.Sleep(ctx, r.d.Clock, r.d.Operator.Config.WaitTime)
}

// hold keeps every instance passive. The time counts from the end of the hold.
func (r *run) hold(ctx context.Context, _ pair, res *Result) error {
	note := "a drill " + rand.Text()
	r.undo.add(change{what: "the hold", by: "leasehold standby resume", do: func(ctx context.Context) error { return r.resume(ctx, note) }})
	held, err := r.d.Operator.Hold(ctx, note)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(held.Note, note) {
		return fmt.Errorf("another operator holds every instance passive: %s", held.Note)
	}
	if err := r.d.Operator.Settle(ctx, held); err != nil {
		return err
	}
	r.d.event("nobody is active for certain")
	if err := clock.Sleep(ctx, r.d.Clock, r.d.Operator.Config.WaitTime); err != nil {
		return err
	}
	from := r.d.Clock.Now()
	if err := r.undo.last(ctx, r.d); err != nil {
		return err
	}
	p, err := r.settled(ctx)
	if err != nil {
		return err
	}
	return r.takes(ctx, res, p.active, from, r.d.settleLimit())
}

// resume ends the hold with that note. The hold of another operator stays.
func (r *run) resume(ctx context.Context, note string) error {
	rec, err := r.d.Operator.Record(ctx)
	if err != nil || rec.Owner != admiral.SkipOwner || !strings.HasSuffix(rec.Note, note) {
		return err
	}
	if _, _, err = r.d.Operator.Resume(ctx); errors.Is(err, admiral.ErrNotHeld) {
		err = nil
	}
	return err
}

// restore makes the instance active that was so at the start.
func (r *run) restore(ctx context.Context) error {
	for {
		p, problem, err := r.d.roll(ctx)
		if err == nil && problem == nil {
			if p.active.Pod == r.start.active.Pod {
				return nil
			}
			if _, err = r.d.Operator.Switchover(ctx, r.start.active.Pod, r.d.settleLimit()); err == nil {
				return nil
			}
		}
		if clock.Sleep(ctx, r.d.Clock, r.d.Every) != nil {
			return errors.Join(problem, err, context.Cause(ctx))
		}
	}
}

// Ready waits until one instance is active and another stands by, as those of a rehearsal are soon
// after their start.
func (d *Drill) Ready(ctx context.Context) error {
	r := &run{d: d}
	_, err := r.settled(ctx)
	return err
}
