package admiral

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// run is one Run of a checker.
type run struct {
	c      *Checker
	s      *State
	clk    clock.Clock
	st     *observed
	m      *lease.Manager
	warm   clock.Instant // when the warm-up is over
	orders chan order    // hand-overs that were asked for

	mu     sync.Mutex
	stop   context.CancelCauseFunc // of the campaign under way
	status string                  // for a roll call
	mine   string                  // why this instance is passive though the row is its own
}

// order asks the holder of the term under token to hand over.
type order struct {
	token fence.Token
	to    string // owner id
}

// errOperator ends a campaign: an operator holds everyone passive.
var errOperator = errors.New("an operator holds every instance passive")

// role takes note of what this instance does, and of why it is passive if the row is its own.
func (r *run) role(status, mine string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.mine = status, mine
}

// keepOut waits for the end of the warm-up, less one TTL. A lease that nobody has ever held is left
// to nobody else: there is no instance to snatch it from.
func (r *run) keepOut(ctx context.Context) error {
	until := r.warm.Add(-r.c.cfg.TTL())
	if r.clk.Now() >= until {
		return nil
	}
	r.role(api.InstanceWarming, "")
	return r.await(ctx, func(rec store.Record) bool { return rec.Owner == "" && rec.Token == 0 }, until)
}

// await looks at the row until ok says so, or until the time is over. It fails only when ctx is
// done.
func (r *run) await(ctx context.Context, ok func(store.Record) bool, until clock.Instant) error {
	limited, cancel := clock.WithTimeout(ctx, r.clk, until.Sub(r.clk.Now()))
	defer cancel()
	for limited.Err() == nil {
		rec, err := r.look(limited)
		if err == nil {
			if ok(rec) {
				return nil
			}
			_, err = store.Wait(limited, r.st, rec.Key, rec.Version)
		}
		if err != nil {
			_ = clock.Sleep(limited, r.clk, r.c.cfg.WaitTime)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// look reads the row once. A store that hangs is given up after the time between two renewals.
func (r *run) look(ctx context.Context) (store.Record, error) {
	ctx, cancel := clock.WithTimeout(ctx, r.clk, r.c.opts.Renew)
	defer cancel()
	return store.Load(ctx, r.st, r.c.cfg.LeaseName)
}

// campaign waits for the lease. It ends with errOperator when an operator's hold is seen.
func (r *run) campaign(ctx context.Context) (*lease.Lease, error) {
	r.role(api.InstancePassive, "this instance is taking the lease")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.setStop(cancel)
	defer r.setStop(nil)
	return r.m.Acquire(ctx, r.c.cfg.LeaseName)
}

func (r *run) setStop(stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = stop
}

// saw is told every row of the lease that the store has shown.
func (r *run) saw(row lease.Status) {
	r.mu.Lock()
	mine := r.mine
	r.mu.Unlock()
	r.s.saw(row, r.m.Holder(), mine)
	if row.Holder != SkipOwner {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop(errOperator)
	}
}

// serve is what the holder of the lease does until it holds it no more.
func (r *run) serve(ctx context.Context, l *lease.Lease) error {
	end := r.warmUp(ctx, l)
	var t *term
	var over <-chan error
	if !end.over {
		r.role(api.InstanceActive, "")
		t = r.s.promote(l, r.c.opts.Early, func(st *Status) {
			st.Owner, st.Token, st.Since = l.Holder(), l.Token(), r.clk.Wall()
		})
		over = r.work(t)
		end = r.active(ctx, l, t, over)
	}
	r.role(api.InstancePassive, end.reason)
	r.s.demote(end.reason)
	if t != nil {
		if end.worked {
			over = nil
		}
		err := r.drain(t, over)
		if errors.Is(err, errBusy) {
			return err
		}
		end.err = errors.Join(end.err, err)
	}
	r.letGo(ctx, l, end.to)
	return end.err
}

// ending says why and how a hold comes to its end.
type ending struct {
	over   bool
	reason string
	to     string // owner id of the successor; "" to free the lease
	err    error  // of Run
	worked bool   // Work has returned
}

// warmUp waits for the end of the warm-up while the lease is held, and renewed.
func (r *run) warmUp(ctx context.Context, l *lease.Lease) ending {
	left := r.warm.Sub(r.clk.Now())
	if left <= 0 {
		return ending{}
	}
	reason := fmt.Sprintf("this instance holds the lease, and is active once it has warmed up, which takes %v", r.c.opts.WarmUp)
	r.role(api.InstanceWarming, reason)
	r.s.set(func(st *Status) {
		st.Initialized, st.Reason, st.Err = true, reason, nil
		st.Owner, st.Token, st.Since = l.Holder(), l.Token(), r.clk.Wall()
	})
	timer := clock.NewTimer(r.clk, left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ending{}
	case <-l.Context().Done():
		return ending{over: true, reason: context.Cause(l.Context()).Error()}
	case <-ctx.Done():
		return ending{over: true, reason: reasonStopped}
	}
}

// work starts what runs while this instance is active. The channel is told what it returned; it is
// nil without work.
func (r *run) work(t *term) <-chan error {
	if r.c.opts.Work == nil {
		return nil
	}
	over := make(chan error, 1)
	go func() { over <- r.c.opts.Work(Term{t}) }() // drain waits for it
	return over
}

// active blocks while the term lasts.
func (r *run) active(ctx context.Context, l *lease.Lease, t *term, over <-chan error) ending {
	events := l.Events()
	for {
		timer := clock.NewTimer(r.clk, t.until().Sub(r.clk.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ending{reason: reasonStopped}
		case <-t.ctx.Done():
			timer.Stop()
			return ending{reason: reasonOf(context.Cause(t.ctx))}
		case <-timer.C:
			if err := t.check(); err != nil {
				return ending{reason: reasonOf(err)}
			}
		case e, ok := <-events:
			if !ok {
				events = nil
			}
			r.event(e)
		case o := <-r.orders:
			if o.token == l.Token() {
				timer.Stop()
				return ending{reason: reasonHandOver, to: o.to}
			}
		case err := <-over:
			timer.Stop()
			return ending{reason: reasonWorkOver, err: err, worked: true}
		}
		timer.Stop()
	}
}

// event shows a renewal that failed, and one that came after all.
func (r *run) event(e lease.Event) {
	switch e.State {
	case lease.StateJeopardy:
		r.s.set(func(st *Status) { st.Err = e.Err })
	case lease.StateHeld:
		r.s.set(func(st *Status) { st.Err = nil })
	}
}

// drain waits until nothing that the term covered is under way, and returns what Work returned, if
// that was still to come. What doesn't end within a TTL ends Run with errBusy: the lease is then
// left to expire, since another holder must not begin while work of this one goes on.
func (r *run) drain(t *term, over <-chan error) (err error) {
	limit := clock.NewTimer(r.clk, r.c.cfg.TTL())
	defer limit.Stop()
	if over != nil {
		select {
		case err = <-over:
		case <-limit.C:
			return fmt.Errorf("%w: what runs while this instance is active has not ended within %v", errBusy, r.c.cfg.TTL())
		}
	}
	select {
	case <-t.quiet():
		return err
	case <-limit.C:
		return fmt.Errorf("%w: a write that was bound to the term has not ended within %v", errBusy, r.c.cfg.TTL())
	}
}

var errBusy = errors.New("the lease is left to expire")

// letGo frees the lease or hands it over. It goes on when ctx is done, for a bounded time.
func (r *run) letGo(ctx context.Context, l *lease.Lease, to string) {
	var err error
	if to == "" {
		err = l.Release(ctx)
	} else {
		err = l.HandOver(ctx, to)
	}
	if err != nil && !errors.Is(err, lease.ErrLost) {
		r.s.set(func(st *Status) { st.Err = err })
	}
}
