package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// lateError is why a call is given up whose store does not answer.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("the store has not answered within %v", e.after)
}

// Is makes it an end of time for all who give up since their context is done.
func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// patience is for how long a call waits for the store. It may be extended while the call waits for
// something else, or hears from the store: that moves the end, and leaves the timer as it is, since
// most calls are over long before.
type patience struct {
	ctx    context.Context //nolint:containedctx // that of the call: done when it is to give up
	cancel context.CancelCauseFunc
	clk    clock.Clock
	limit  time.Duration

	mu    sync.Mutex
	until clock.Instant // when the call gives up; NoDeadline when it was lifted
	due   clock.Instant // of the timer, until then or before; NoDeadline without one
	stop  func() bool   // of the timer
}

// patienceKey is of the patience in a context.
type patienceKey struct{}

// newPatience returns one that ends with ctx, or when the store has not answered within the
// server's limit.
func (s *Server) newPatience(ctx context.Context) *patience {
	p := &patience{clk: s.clk, limit: s.opts.StoreTimeout, due: clock.NoDeadline}
	ctx, p.cancel = context.WithCancelCause(ctx)
	p.ctx = context.WithValue(ctx, patienceKey{}, p)
	p.extend(0)
	return p
}

// extend has the store answer within the limit from now on, and d. It returns now.
func (p *patience) extend(d time.Duration) (now clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now = p.clk.Now()
	if p.until = now.Add(p.limit + d); p.until < p.due {
		p.disarm()
		p.arm(now)
	}
	return now
}

// arm starts a timer for the end. p.mu is held.
func (p *patience) arm(now clock.Instant) {
	due := p.until
	p.due, p.stop = due, clock.AtFrom(p.clk, now, due, func() { p.ring(due) })
}

// disarm stops the timer, if there is one. p.mu is held.
func (p *patience) disarm() {
	if p.due != clock.NoDeadline {
		p.due = clock.NoDeadline
		p.stop()
	}
}

// ring is called by the timer that was due then.
func (p *patience) ring(due clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if due != p.due { // it was stopped too late
		return
	}
	p.due = clock.NoDeadline
	if now := p.clk.Now(); now < p.until {
		p.arm(now)
		return
	}
	p.cancel(&lateError{p.limit})
}

// lift has it wait for as long as its context lasts: what it waits for has a bound of its own.
func (p *patience) lift() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = clock.NoDeadline
	p.disarm()
}

func (p *patience) end() {
	p.lift()
	p.cancel(context.Canceled)
}

// heard has the call whose context that is wait for more, since the store has said something.
func heard(ctx context.Context) {
	if p, ok := ctx.Value(patienceKey{}).(*patience); ok {
		p.extend(0)
	}
}

// many is how many records of a list count as one answer of the store.
const many = 64

// carriedOut reports whether a request is carried out though its client has gone: to let go, and a
// write whose outcome is to be as certain as can be.
func carriedOut(rt route) bool { return rt.method == http.MethodDelete || rt.op == "write record" }

// patienceOf returns the patience of a request.
func (s *Server) patienceOf(rt route, r *http.Request) *patience {
	if carriedOut(rt) {
		return s.newPatience(context.WithoutCancel(r.Context()))
	}
	return s.newPatience(r.Context())
}

// late returns why a call was given up, if that is that the store did not answer; else nil.
func late(ctx context.Context) error {
	if slow, ok := errors.AsType[*lateError](context.Cause(ctx)); ok {
		return slow
	}
	return nil
}
