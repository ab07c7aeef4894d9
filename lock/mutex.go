package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
)

// MutexOptions of a [Mutex].
type MutexOptions struct {
	// Fair serves callers with this option in the order of their arrival. It costs one more write
	// to acquire, and one to release. Callers without it may get the mutex between them, but never
	// at the same time.
	Fair bool
}

// Mutex has one holder at a time. It is the lease of its name, so it also excludes any holder of
// that lease. It is safe for concurrent use, and not reentrant. A second Lock waits for the first
// hold, also of the same session, and a second TryLock matches [lease.ErrHeld].
type Mutex struct {
	s    *lease.Session
	name string
	turn *shared // nil unless it is fair
}

// NewMutex returns the mutex of that name, as the session uses it. It does no I/O.
func NewMutex(s *lease.Session, name string, opts MutexOptions) (*Mutex, error) {
	turn, err := newShared(s, name, roster.Mutex, 1, true)
	if err != nil {
		return nil, err
	}
	m := &Mutex{s: s, name: name}
	if opts.Fair {
		m.turn = turn
	}
	return m, nil
}

// Lock acquires the mutex. It blocks until the mutex is free, ctx is done or the session ends, and
// continues while the store fails.
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) { return m.lock(ctx, false) }

// TryLock is Lock if it can be had at once, and otherwise an error that matches [lease.ErrHeld].
// The rest is as with [Semaphore.TryAcquire].
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) { return m.lock(ctx, true) }

func (m *Mutex) lock(ctx context.Context, try bool) (*Hold, error) {
	var turn *Hold
	if m.turn != nil {
		var err error
		if turn, err = m.turn.acquire(ctx, 1, try); err != nil {
			return nil, err
		}
	}
	acquire := m.s.Acquire
	if try {
		acquire = m.s.TryAcquire
	}
	l, err := acquire(ctx, m.name)
	if err != nil {
		if turn != nil {
			err = errors.Join(err, turn.Release(ctx))
		}
		return nil, heldBy(m.name, err)
	}
	return ofLeases(m.name, []*lease.Lease{l}, turn), nil
}

// heldBy adds this package's error to that of a lease which is held.
func heldBy(name string, err error) error {
	var held *lease.HeldError
	if errors.As(err, &held) {
		return errors.Join(err, &HeldError{Name: name, Wanted: 1, Holders: []string{held.Holder}})
	}
	return err
}

// ofLeases returns the hold of leases of one session, and of a turn if there is one.
func ofLeases(name string, all []*lease.Lease, turn *Hold) *Hold {
	first := all[0]
	h := &Hold{name: name, holder: first.Holder(), token: first.Token()}
	h.check = func() error {
		for _, l := range all {
			if err := l.Check(); err != nil {
				return err
			}
		}
		return nil
	}
	h.until = func() clock.Instant {
		until := first.ValidUntil()
		for _, l := range all[1:] {
			until = min(until, l.ValidUntil())
		}
		return until
	}
	h.left = func() time.Duration {
		left := first.Left()
		for _, l := range all[1:] {
			left = min(left, l.Left())
		}
		return left
	}
	h.ctx, h.end = context.WithCancelCause(first.Context())
	var unlink []func() bool
	for _, l := range all[1:] {
		unlink = append(unlink, context.AfterFunc(l.Context(), func() { h.end(context.Cause(l.Context())) }))
	}
	h.free = func(ctx context.Context) error {
		var errs []error
		for _, stop := range unlink {
			stop()
		}
		for _, l := range slices.Backward(all) {
			errs = append(errs, l.Release(ctx))
		}
		if turn != nil {
			errs = append(errs, turn.Release(ctx))
		}
		return errors.Join(errs...)
	}
	return h
}
