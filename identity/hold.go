package identity

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Hold is a value that is held. It is a window as package flake wants it. It is safe for concurrent
// use.
type Hold struct {
	l      *lease.Lease
	st     store.Store
	clk    clock.Clock
	ttl    time.Duration
	pool   string
	value  string
	number uint64
	length time.Duration

	floor   time.Time
	ceiling atomic.Pointer[time.Time] // stored, or lower
	ask     chan struct{}             // somebody wants it raised
	times   *timeline

	stop context.CancelFunc
	done chan struct{} // closed when the ceiling rises no more

	once sync.Once
	err  error // of the release
}

// Pool returns the name of the pool.
func (h *Hold) Pool() string { return h.pool }

// Value returns the held value: "17", "blue", "10.0.3.0/24".
func (h *Hold) Value() string { return h.value }

// Number returns the value of a range, and the place of a name or a prefix in its pool, from 0 on.
func (h *Hold) Number() uint64 { return h.number }

// Token returns the fencing token of this hold.
func (h *Hold) Token() fence.Token { return h.l.Token() }

// Sequencer returns what a request to a guarded resource carries.
func (h *Hold) Sequencer() fence.Sequencer { return h.l.Sequencer() }

// Check returns nil while the hold is valid at this instant; see [lease.Lease.Check]. Ids need no
// Check: they have the window.
func (h *Hold) Check() error { return h.l.Check() }

// ValidUntil returns the instant of the manager's clock at which the hold ends unless it is
// renewed; see [lease.Lease.ValidUntil].
func (h *Hold) ValidUntil() clock.Instant { return h.l.ValidUntil() }

// Left returns the time for which the hold is still valid if no renewal succeeds; 0 when it has
// ended. See [lease.Lease.Left].
func (h *Hold) Left() time.Duration { return h.l.Left() }

// Context returns a context that is cancelled when the hold ends; see [lease.Lease.Context].
func (h *Hold) Context() context.Context { return h.l.Context() }

// Floor returns the earliest time that this holder may use in ids. Earlier holders had the times
// before. It never changes.
func (h *Hold) Floor() time.Time { return h.floor }

// Ceiling returns the time up to which this holder may stamp, which is stored. It rises in the
// background while the value is held, and never falls; after a loss or a release it stays. It
// doesn't block.
func (h *Hold) Ceiling() time.Time {
	ceiling := *h.ceiling.Load()
	_, wanted := h.times.look(ceiling)
	h.want(ceiling, wanted)
	return ceiling
}

// Now returns the time for ids that are made with the value. Package flake takes it from here. It
// is the wall clock's time, except after that was set.
//
// If the wall clock is set back by up to a day, this time runs an eighth slower until the clock has
// caught up. So ids are made meanwhile, with times that are ahead of the clock. If it is set
// forward, this time follows as soon as the store has a ceiling for that. Now doesn't block.
func (h *Hold) Now() time.Time {
	ceiling := *h.ceiling.Load()
	now, wanted := h.times.look(ceiling)
	h.want(ceiling, wanted)
	return now
}

// want has the ceiling raised if less than half a window is left at that time.
func (h *Hold) want(ceiling, at time.Time) {
	if ceiling.Sub(at) >= h.length/2 {
		return
	}
	select {
	case h.ask <- struct{}{}:
	default: // it is asked for already
	}
}

// keep raises the ceiling until ctx is done. Its clock may be set, so it looks at it several times
// in a window.
func (h *Hold) keep(ctx context.Context) {
	defer close(h.done)
	for ctx.Err() == nil {
		timer := clock.NewTimer(h.clk, h.length/8)
		select {
		case <-timer.C:
		case <-h.ask:
		case <-ctx.Done():
		}
		timer.Stop()
		ceiling := *h.ceiling.Load()
		_, wanted := h.times.look(ceiling)
		target := wanted.Add(h.length)
		if ctx.Err() != nil || target.Sub(ceiling) <= h.length/2 {
			continue
		}
		err := raise(ctx, h.st, windowKey(h.pool, h.value), h.Token(), target)
		switch {
		case err == nil:
			h.ceiling.Store(&target)
		case errors.Is(err, ErrWindow):
			return
		default:
			_ = clock.Sleep(ctx, h.clk, h.ttl/20)
		}
	}
}

// Release gives up the value. Stop its users first. used is the time from which on no id has a
// time: what flake's Generator.Stop returns, or [Hold.Floor] if no id was made. The zero time means
// unknown; then the next holder begins at the ceiling.
//
// Release first stores used, and then releases the lease, whether that worked or not. It blocks
// until the store has answered, for a bounded time even if ctx is done; see [lease.Lease.Release].
// An error that matches [store.ErrUnknownOutcome] means that something was not confirmed. Then the
// next holder begins at the ceiling, or can't begin before the TTL is over. Releasing again returns
// the first error.
func (h *Hold) Release(ctx context.Context, used time.Time) error {
	h.once.Do(func() {
		ctx := context.WithoutCancel(ctx)
		h.stop()
		<-h.done
		limited, cancel := clock.WithTimeout(ctx, h.clk, h.ttl/3)
		defer cancel()
		err := closeWindow(limited, h.st, windowKey(h.pool, h.value), h.Token(), used)
		h.err = errors.Join(err, h.l.Release(ctx))
		if h.err == nil {
			offer(limited, h.st, h.clk, h.pool, h.value, h.ttl/250)
		}
	})
	return h.err
}

// offer puts a value into the index of free ones. Many may do so at a time, so it tries a few
// times, and leaves it then: values that nobody knows to be free are found when all are looked at.
func offer(ctx context.Context, st store.Store, clk clock.Clock, pool, value string, pause time.Duration) {
	for n := range 4 {
		rec, p, s, err := declared(ctx, st, pool, Values{})
		place, ok := s.place(value)
		if err != nil || !ok {
			return
		}
		p.add(place)
		p.Before, p.Last = p.Last, clk.Wall()
		if _, ok := put(ctx, st, rec, p); ok || clock.Sleep(ctx, clk, jitter(pause<<n)) != nil {
			return
		}
	}
}
