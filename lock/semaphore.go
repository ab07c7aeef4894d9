package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"crypto/rand"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// SemaphoreOptions say what a semaphore is. All who use one name have to say the same.
type SemaphoreOptions struct {
	Limit int  // of the weights of all holders: 1 to MaxShares
	Fair  bool // first come, first served; otherwise whoever is quick
}

// Semaphore lets shares be held whose weights add up to a limit. It is safe for concurrent use.
type Semaphore struct{ *shared }

// NewSemaphore returns the semaphore of that name, as the session uses it. It does no I/O.
func NewSemaphore(s *lease.Session, name string, opts SemaphoreOptions) (*Semaphore, error) {
	if opts.Limit < 1 || opts.Limit > MaxShares {
		return nil, fmt.Errorf("semaphore %s: Limit %d: want 1 to %d", name, opts.Limit, MaxShares)
	}
	l, err := newShared(s, name, kindSemaphore, opts.Limit, opts.Fair)
	if err != nil {
		return nil, err
	}
	return &Semaphore{l}, nil
}

// Acquire takes a share of that weight. It blocks until it is granted, ctx is done or the session ends. The errors match
// [ErrMismatch] when the semaphore is declared otherwise, and [ErrFull] when the roster has no room.
func (s *Semaphore) Acquire(ctx context.Context, weight int) (*Hold, error) {
	return s.acquire(ctx, weight, false)
}

// TryAcquire takes a share if it can be had at once, and otherwise returns a *[HeldError]. It takes no notice of a holder's death
// before a waiting Acquire, or several tries of one, had the time to observe it.
func (s *Semaphore) TryAcquire(ctx context.Context, weight int) (*Hold, error) {
	return s.acquire(ctx, weight, true)
}

// SetLimit changes the limit of the semaphore of that name, for all who use it from now on. What is held stays held; a limit
// below that is an error. It blocks until the store has answered or ctx is done.
func SetLimit(ctx context.Context, m *lease.Manager, name string, limit int) error {
	if limit < 1 || limit > MaxShares {
		return fmt.Errorf("semaphore %s: limit %d: want 1 to %d", name, limit, MaxShares)
	}
	for {
		rec, err := store.Load(ctx, m.Store(), prefix+name)
		if err != nil {
			return err
		}
		r, err := readRoster(rec)
		switch {
		case err != nil:
			return err
		case r.Kind != "" && r.Kind != kindSemaphore:
			return &MismatchError{Name: name, Field: "kind", Stored: r.Kind, Asked: kindSemaphore}
		case r.Limit-r.free() > limit:
			return &MismatchError{Name: name, Field: "limit", Stored: strconv.Itoa(r.Limit) + ", of which " + strconv.Itoa(r.Limit-r.free()) + " are held", Asked: strconv.Itoa(limit)}
		}
		r.Kind, r.Limit = kindSemaphore, limit
		if rec, err = r.write(rec); err != nil {
			return err
		}
		rec.Nonce = rand.Text()
		if _, err = m.Store().Put(ctx, rec); err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
}
