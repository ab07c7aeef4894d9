package lock

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// MaxShares is how many may hold a semaphore or a read/write lock, or wait for it, at a time, and
// the highest limit of a semaphore.
const MaxShares = roster.MaxShares

// SemaphoreOptions describe a semaphore. All callers of one name have to give the same options,
// unless [SetLimit] has set its limit.
type SemaphoreOptions struct {
	Limit int // of the weights of all holders: 1 to MaxShares
	// First come, first served; otherwise the fastest caller, but a waiter of a TTL takes a place
	// in line.
	Fair bool
}

// Semaphore lets shares be held whose weights add up to a limit. It is safe for concurrent use.
type Semaphore struct{ *shared }

// NewSemaphore returns the semaphore of that name, as the session uses it. It does no I/O.
func NewSemaphore(s *lease.Session, name string, opts SemaphoreOptions) (*Semaphore, error) {
	if opts.Limit < 1 || opts.Limit > MaxShares {
		return nil, fmt.Errorf("semaphore %s: Limit %d: want 1 to %d", name, opts.Limit, MaxShares)
	}
	l, err := newShared(s, name, roster.Semaphore, opts.Limit, opts.Fair)
	if err != nil {
		return nil, err
	}
	return &Semaphore{l}, nil
}

// Acquire acquires a share of that weight. It blocks until the share is granted, ctx is done or the
// session ends, and continues while the store fails. The errors match [ErrMismatch] when the
// semaphore is declared with other options. A caller that finds the roster full waits for a place,
// in no order. If Acquire fails, what may have reached the store is undone in the background, as
// long as the session lives.
func (s *Semaphore) Acquire(ctx context.Context, weight int) (*Hold, error) {
	return s.acquire(ctx, weight, false)
}

// TryAcquire acquires a share if it is free now, and otherwise returns a *[HeldError]. A store that
// doesn't answer is an error. The Semaphore remembers what it saw. Where the store doesn't vouch
// for the age of records, a try a TTL after the first one takes the share of a dead holder.
func (s *Semaphore) TryAcquire(ctx context.Context, weight int) (*Hold, error) {
	return s.acquire(ctx, weight, true)
}

// SetLimit changes the limit of the semaphore of that name. From then on all callers follow it,
// also those that wait, and those that name another limit. Only a caller whose weight is above it
// gets a *[MismatchError]. (Earlier versions compare the limit with their own.) Held shares stay
// held, and a limit below them is an error.
//
// SetLimit blocks until the store has answered or ctx is done. An error that matches
// [store.ErrUnknownOutcome] means that the limit may have been changed, or may still be.
func SetLimit(ctx context.Context, m *lease.Manager, name string, limit int) error {
	if limit < 1 || limit > MaxShares {
		return fmt.Errorf("semaphore %s: limit %d: want 1 to %d", name, limit, MaxShares)
	}
	if err := checkName(name); err != nil {
		return err
	}
	l := watching(m, name, roster.Semaphore, limit)
	return store.Update(ctx, m.Store(), name, func(rec *store.Record) (bool, error) {
		was := *rec
		f, err := l.find(ctx, was, map[string]bool{})
		r := f.roster
		held := r.Limit - r.Free()
		switch {
		case err != nil:
			return false, err
		case held > limit:
			return false, &MismatchError{Name: name, Stored: r.Limit, Asked: limit, Held: held}
		case was.Kind == store.KindSemaphore && r.Limit == limit && r.Set:
			return false, nil
		}
		r.Limit, r.Set = limit, true
		*rec = f.rec
		return true, r.Write(rec)
	})
}
