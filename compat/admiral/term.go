package admiral

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// Term is one time of being active, from [State.Guard]. It is safe for concurrent use.
type Term struct{ t *term }

// Token returns the fencing token of the term: send it with every write to what can check it. It is
// 0 with a checker that has no lease.
func (t Term) Token() fence.Token {
	if t.t.lease == nil {
		return 0
	}
	return t.t.lease.Token()
}

// Owner returns the id of the holder; "" with a checker that has no lease.
func (t Term) Owner() string {
	if t.t.lease == nil {
		return ""
	}
	return t.t.lease.Holder()
}

// Check returns nil while the term lasts, and a *[ReadOnlyError] or a *[lease.LostError] after it.
// It looks at the clock at each call.
func (t Term) Check() error { return t.t.check() }

// Context returns a context that is cancelled when the term ends.
func (t Term) Context() context.Context { return t.t.ctx }

// ValidUntil returns the instant at which the term ends unless the lease is renewed; [clock.Ended]
// when it has ended.
func (t Term) ValidUntil() clock.Instant { return t.t.until() }

// Left returns the time for which the term still lasts if the lease isn't renewed. It returns 0
// when the term has ended, and the largest duration with a checker that has no lease. Left does no
// I/O.
func (t Term) Left() time.Duration { return t.t.left() }

// Bind returns a context for one write: it ends with ctx, or when the term does. Call done when the
// write is over, however it ended. The lease is not handed over or released while a write that was
// bound to it still runs.
func (t Term) Bind(ctx context.Context) (_ context.Context, done func()) {
	t.t.begin()
	bound, cancel := context.WithCancelCause(ctx)
	if t.t.ctx.Err() != nil { // AfterFunc would cancel it a moment later
		cancel(context.Cause(t.t.ctx))
	}
	unlink := context.AfterFunc(t.t.ctx, func() { cancel(context.Cause(t.t.ctx)) })
	return bound, sync.OnceFunc(func() {
		unlink()
		cancel(nil)
		t.t.finished()
	})
}

type term struct {
	lease *lease.Lease // nil without one
	early time.Duration
	clk   clock.Clock
	ctx   context.Context
	end   context.CancelCauseFunc

	mu    sync.Mutex
	bound int           // writes under way
	idle  chan struct{} // closed when there is none; nil while nobody asks
}

// newTerm makes the term of a lease. It ends early before the lease does.
func newTerm(l *lease.Lease, early time.Duration, clk clock.Clock) *term {
	parent := context.Background()
	if l != nil {
		parent = l.Context()
	}
	t := &term{lease: l, early: early, clk: clk}
	t.ctx, t.end = context.WithCancelCause(parent)
	return t
}

func (t *term) finish(cause error) { t.end(cause) }

func (t *term) check() error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if t.lease == nil {
		return nil
	}
	if err := t.lease.Check(); err != nil {
		return err
	}
	if t.left() <= 0 {
		return &ReadOnlyError{Reason: "the lease was not renewed in time"}
	}
	return nil
}

// until is when the term ends by itself.
func (t *term) until() clock.Instant {
	switch {
	case t.ctx.Err() != nil:
		return clock.Ended
	case t.lease == nil:
		return clock.NoDeadline
	}
	return t.lease.ValidUntil().Add(-t.early)
}

func (t *term) left() time.Duration {
	switch until := t.until(); until {
	case clock.Ended:
		return 0
	case clock.NoDeadline:
		return math.MaxInt64
	default:
		return max(until.Sub(t.clk.Now()), 0)
	}
}

func (t *term) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bound++
}

func (t *term) finished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bound--
	if t.bound == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// quiet returns a channel that is closed when no write is under way. A term that has ended begins
// no other.
func (t *term) quiet() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := make(chan struct{})
	if t.bound == 0 {
		close(c)
		return c
	}
	if t.idle == nil {
		t.idle = c
	}
	return t.idle
}
