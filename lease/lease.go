package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Lease is one term of holding a name, from its acquisition to its loss or release. It is safe for
// concurrent use.
type Lease struct {
	m     *Manager
	s     *Session // that keeps it; nil when it keeps itself
	key   string
	token fence.Token

	term drive.Term // what the program relies on

	mu       sync.Mutex
	lost     *LostError         // why it ended; nil before
	trouble  error              // why the last renewal failed; nil when it didn't
	ctx      context.Context    // nil until Context is called
	cancel   context.CancelFunc // of ctx
	events   stream
	kept     store.Record  // of a lease that a session keeps
	keeper   *keeper       // of one that keeps itself
	onEnd    func()        // called once the hold has ended
	rider    *rider        // what renewals carry; nil when it is no session's
	left     chan struct{} // closed when a release is over
	leaveErr error         // its outcome
}

// newLease makes a lease of a hold that was just acquired.
func (m *Manager) newLease(d *drive.Driver, s *Session, tr *TermTrace) *Lease {
	l := &Lease{m: m, s: s, key: d.Hold.Key, token: d.Hold.Term.Token}
	d.Begin(&l.term, s.term())
	if s != nil { // a session may have very many: under 1 KiB each
		l.kept = drive.Kept(d.Hold.Term)
	}
	var left time.Duration
	l.events.passes, l.events.trace = m.events.admit(), tr
	if l.events.passes || tr != nil { // nobody else can look yet
		left = l.Left()
	}
	l.emit(StateHeld, left, nil)
	return l
}

// String returns the name and the token, for logs.
func (l *Lease) String() string { return fmt.Sprintf("%s (token %d)", l.key, l.token) }

// Name returns the name that is held.
func (l *Lease) Name() string { return l.key }

// Token returns the fencing token of this term. Send the token with every request to what the lease
// guards.
func (l *Lease) Token() fence.Token { return l.token }

// Holder returns the id of the holder, which is the manager's.
func (l *Lease) Holder() string { return l.m.owner }

// Sequencer returns what a request to a guarded resource carries: name, holder and token.
func (l *Lease) Sequencer() fence.Sequencer {
	return fence.Sequencer{Name: l.key, Holder: l.m.owner, Token: l.token}
}

// Check returns nil while the lease is valid at this instant, and a *[LostError] at every call
// after its end. Check looks at the clock at each call. So a process that was stopped past the end
// of its lease learns of the end here first. Check does no I/O, takes well under a microsecond and
// allocates nothing while the lease is valid.
func (l *Lease) Check() error {
	d := l.term.Until()
	if l.m.clk.Now() < d {
		return nil
	}
	return l.loss()
}

// ValidUntil returns the instant of the manager's clock at which the lease ends if the holder
// doesn't renew. It returns [clock.Ended] when the lease has ended.
func (l *Lease) ValidUntil() clock.Instant { return l.term.Until() }

// Left returns the time for which the lease is still valid if no renewal succeeds. It returns 0
// when the lease has ended. Left does no I/O, takes well under a microsecond and allocates nothing.
func (l *Lease) Left() time.Duration {
	d := l.term.Until()
	if d == clock.Ended {
		return 0
	}
	return max(d.Sub(l.m.clk.Now()), 0)
}

// Context returns a context that is cancelled when the lease ends, before anything else is done
// about the end. Its cause is then a *[LostError].
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		l.ctx, l.cancel = ctx, func() { cancel(l.lost) }
		if l.lost != nil {
			l.cancel()
		}
	}
	return l.ctx
}

// Events returns the lease's events in order, from when Events was first called. The present state
// comes first. The channel is closed after the final event, which is always sent. A reader that
// falls 15 events behind misses some in between.
func (l *Lease) Events() <-chan Event {
	left := l.Left()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events.c == nil {
		l.events.c = make(chan Event, eventBuffer)
		l.events.c <- l.event(l.events.state, left, nil)
		if l.lost != nil {
			close(l.events.c)
		}
	}
	return l.events.c
}

// loss returns why the lease ended. When the keeper has not noticed yet that validity is over, it
// is over all the same.
func (l *Lease) loss() error {
	over := l.term.Over(l.m.clk.Now())
	switch {
	case over == nil:
		return l.Check() // renewed in the meantime
	case over != &l.term:
		l.s.hold.end(l.s.hold.overdue())
		l.end(l.s.why())
	default:
		l.end(l.overdue())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// overdue says why the lease ended if it did because its validity ran out.
func (l *Lease) overdue() (Cause, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble != nil {
		return CauseOutage, l.trouble
	}
	return CauseExpired, nil
}

// end ends the hold for this process, once: first nobody may rely on it any more, then the context,
// then the events.
func (l *Lease) end(cause Cause, err error) {
	if l.markEnded(cause, err) && l.onEnd != nil {
		l.onEnd()
	}
}

func (l *Lease) markEnded(cause Cause, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.term.End() {
		return false
	}
	l.lost = &LostError{Name: l.key, Token: l.token, Cause: cause, Err: err}
	if l.cancel != nil {
		l.cancel()
	}
	state := StateLost
	if cause == CauseReleased {
		state = StateReleased
	}
	l.emit(state, 0, l.lost)
	return true
}

// Release ends the hold and frees the name, so that others need not wait until it expires. The work
// that the lease guards has to have stopped before. Release cancels the context first, then stops
// renewal, then frees this very term and no other. If the name was lost and taken meanwhile,
// Release writes nothing.
//
// Release blocks until the store has answered. It continues when ctx is done, for a bounded time: a
// third of the TTL, or a second if that is longer. It returns nil when the name is free, or known
// not to be this term's any more. An unknown outcome, an error that matches
// [store.ErrUnknownOutcome], means that the store did not confirm the release. The name is then
// free within the TTL at the latest. Releasing twice is no error.
func (l *Lease) Release(ctx context.Context) error {
	return l.leave(ctx, protocol.Exit{Why: protocol.WhyReleased})
}

// HandOver hands the name over to another holder in one write, with a new token for it. The other
// holder's id is what [Manager.Holder] returns there. That holder has to wait in Acquire for the
// same name. It holds the name after one write of its own. If it never comes, the name is free for
// others after the TTL. The rest is as with Release, with one exception: HandOver returns an error
// that matches [ErrLost] if this term was over already.
func (l *Lease) HandOver(ctx context.Context, to string) error {
	if driver.CheckKey(to) != nil || to == l.m.owner { // an owner id keeps to the limits of a key
		return fmt.Errorf("hand over %s to %q: want the owner id of another holder, as its Manager.Holder returns it", l.key, to)
	}
	if err := l.Check(); err != nil {
		return err
	}
	return l.leave(ctx, protocol.Exit{To: to})
}

func (l *Lease) leave(ctx context.Context, e protocol.Exit) error {
	l.mu.Lock()
	first := l.left == nil
	if first {
		l.left = make(chan struct{})
	}
	l.mu.Unlock()
	if !first {
		<-l.left
		if e.To != "" {
			return l.Check() // another call has let go of it
		}
		return l.leaveErr
	}
	defer close(l.left)
	ctx, traced := l.events.trace.leaves(ctx, e.To)
	d, env := drive.Leave(program{l}, e)
	err := l.m.run.Finish(context.WithoutCancel(ctx), d, env)
	l.m.settle(d, l.s)
	if l.s != nil {
		l.s.roster.Forget(l)
	}
	var conflict *store.ConflictError
	if e.To != "" && errors.As(err, &conflict) {
		err = &LostError{Name: l.key, Token: l.token, Cause: CauseTaken, Err: err}
	}
	l.leaveErr = err
	traced(err)
	return err
}

// program is what [drive.Leave] needs of a lease.
type program struct{ l *Lease }

func (p program) Stop() { p.l.end(CauseReleased, nil) }

func (p program) Retire() *drive.Driver {
	l := p.l
	if l.keeper != nil {
		return l.keeper.retire()
	}
	d := drive.Resume(l.kept, l.m.claim(l.s), l.m.timing)
	return &d
}

func (p program) Env() protocol.Env { return p.l.m.run.Env() }
