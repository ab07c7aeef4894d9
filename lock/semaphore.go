package lock

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// MaxShares is how many may hold a semaphore or a read/write lock, or wait for it, at a time, and the highest limit of a semaphore.
const MaxShares = roster.MaxShares

// SemaphoreOptions say what a semaphore is. All callers that use one name have to say the same, unless [SetLimit] has set its limit.
type SemaphoreOptions struct {
	Limit int  // of the weights of all holders: 1 to MaxShares
	Fair  bool // first come, first served; otherwise who is quick, until one has waited for a TTL: it takes a place in line then
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

// Acquire takes a share of that weight. It blocks until it is granted, ctx is done or the session ends, and goes on while the
// store fails. The errors match [ErrMismatch] when the semaphore is declared otherwise. Who finds
// no place on a full roster waits for one, in no order. What may have reached the store when it fails is taken back in the background, for as long as the session lives.
func (s *Semaphore) Acquire(ctx context.Context, weight int) (*Hold, error) {
	return s.acquire(ctx, weight, false)
}

// TryAcquire takes a share if it can be had at once, and otherwise returns a *[HeldError]. A store that doesn't answer is an
// error. It remembers what it saw: where the store doesn't vouch for the age of records, a try that comes a TTL after the
// first one of the same Semaphore takes the share of a holder that has died.
func (s *Semaphore) TryAcquire(ctx context.Context, weight int) (*Hold, error) {
	return s.acquire(ctx, weight, true)
}

// SetLimit changes the limit of the semaphore of that name. All callers follow it from then on, also those that wait, and those that
// name another limit; only a caller whose weight is above it gets a *[MismatchError]. (Versions before this one compare the limit with
// their own.) What is held stays held; a limit below that is an error. SetLimit blocks until the store has answered or ctx is done. An
// error that matches [store.ErrUnknownOutcome] means that the limit may have been changed, or may yet be.
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
