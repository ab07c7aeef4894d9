package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/driver"
)

// ErrReleased is the error of a hold that was released.
var ErrReleased = errors.New("lock was released")

// Hold is a lock, or a share of one, that is held. It is safe for concurrent use.
type Hold struct {
	name   string
	holder string
	token  fence.Token
	slot   int

	check func() error // of what keeps it
	until func() clock.Instant
	left  func() time.Duration
	ctx   context.Context
	end   context.CancelCauseFunc

	of   *lease.Session // of a share: that which keeps it
	mine roster.Entry   // on the roster

	released atomic.Bool
	once     sync.Once
	free     func(ctx context.Context) error
	err      error // of the release
}

// Token returns the fencing token of this hold.
func (h *Hold) Token() fence.Token { return h.token }

// Slot returns which of a semaphore's slots this share has, from 0 on: the least that was free when
// it was granted. No two shares that are held have the same one. It is 0 for other locks.
func (h *Hold) Slot() int { return h.slot }

// Sequencer returns what a request to a guarded resource carries. Each slot of a semaphore is a
// name of its own: NAME#SLOT.
func (h *Hold) Sequencer() fence.Sequencer {
	return fence.Sequencer{Name: h.name, Holder: h.holder, Token: h.token}
}

// Check returns nil while the hold is valid at this instant, and the reason why not for ever after.
// It does no I/O.
func (h *Hold) Check() error {
	if h.released.Load() {
		return fmt.Errorf("%s: %w", h.name, ErrReleased)
	}
	return h.check()
}

// ValidUntil returns the instant of the manager's clock at which the hold ends unless it is
// renewed; [clock.Ended] when it has ended.
func (h *Hold) ValidUntil() clock.Instant {
	if h.released.Load() {
		return clock.Ended
	}
	return h.until()
}

// Left returns the time for which the hold is still valid if no renewal succeeds. It returns 0 when
// the hold has ended. Left does no I/O and allocates nothing; its time grows with the names of a
// [MultiHold].
func (h *Hold) Left() time.Duration {
	if h.released.Load() {
		return 0
	}
	return h.left()
}

// Context returns a context that is cancelled when the hold ends: with [ErrReleased], or with the
// *[lease.LostError] of what kept it.
func (h *Hold) Context() context.Context { return h.ctx }

// Release gives up the hold. Stop the guarded work first. It blocks until the store has answered,
// for a third of the session's TTL at most, even if ctx is done. What is not settled by then is
// settled in the background, as long as the session lives. The error then matches
// [store.ErrUnknownOutcome]. Releasing again returns the first error.
func (h *Hold) Release(ctx context.Context) error {
	h.finish(func() error { return h.free(context.WithoutCancel(ctx)) })
	return h.err
}

// finish ends the hold, and lets free have what the store still shows of it. It reports false, and
// doesn't call it, when the hold was ended before.
func (h *Hold) finish(free func() error) (first bool) {
	h.once.Do(func() {
		first = true
		h.released.Store(true)
		h.end(fmt.Errorf("%s: %w", h.name, ErrReleased))
		h.err = free()
	})
	return first
}

// Run holds a lock while f runs. It calls take, such as [Mutex.Lock] or [RWMutex.TryRLock], calls
// f, waits for f to return, and releases. f isn't called after an error of take.
//
// The context of f is done when ctx is, or when the hold ends, with the hold's *[lease.LostError]
// as its cause. f has to stop at once in that case. Run returns take's error. Otherwise it returns
// the error of f, joined with the *[lease.LostError] if the hold was lost, and with the error of
// the release.
func Run(ctx context.Context, take func(context.Context) (*Hold, error), f func(context.Context, *Hold) error) (err error) {
	h, err := take(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(h.Context(), func() { cancel(context.Cause(h.Context())) })
	defer func() { // also when f panics
		unlink()
		var lost error
		if cause := h.Check(); errors.Is(cause, lease.ErrLost) {
			lost = cause
		}
		cancel(nil)
		err = errors.Join(err, lost, h.Release(ctx))
	}()
	return f(ctx, h)
}

// hold returns the hold of a share that was granted.
func (l *shared) hold(e roster.Entry) *Hold {
	h := &Hold{name: l.name, holder: l.m.Holder(), token: e.Token, of: l.s, mine: e}
	h.check, h.until, h.left = l.s.Check, l.s.ValidUntil, l.s.Left
	if l.kind == roster.Semaphore {
		h.name, h.slot = fmt.Sprintf("%s#%d", l.name, e.Slot), e.Slot
	}
	h.ctx, h.end = context.WithCancelCause(l.s.Context())
	h.free = func(ctx context.Context) error { return l.release(ctx, e.ID) }
	return h
}

func (l *shared) release(ctx context.Context, id string) error {
	ctx, cancel := clock.WithTimeout(ctx, l.m.Clock(), l.m.TTL()/3)
	defer cancel()
	err := l.remove(ctx, id, nil)
	if err == nil {
		return nil
	}
	if !fatal(err) {
		l.s.Background(func(ctx context.Context) { _ = l.remove(ctx, id, nil) })
		err = driver.Unknown(l.key(), err)
	}
	return fmt.Errorf("release %s: %w", l.name, err)
}
