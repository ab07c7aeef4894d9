package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// RWMutex is held by any number of readers, up to [MaxShares] - 1, or by one writer. It is first
// come, first served, so readers don't keep a writer waiting forever, nor writers a reader. It is
// safe for concurrent use, and not reentrant: a writer that calls RLock waits for itself. Use
// [RWMutex.Downgrade] instead.
type RWMutex struct{ shared *shared }

// NewRWMutex returns the read/write lock of that name, as the session uses it. It does no I/O.
func NewRWMutex(s *lease.Session, name string) (*RWMutex, error) {
	l, err := newShared(s, name, roster.RW, MaxShares, true)
	if err != nil {
		return nil, err
	}
	return &RWMutex{l}, nil
}

// BesideLeases returns the same lock for a name that others sometimes hold alone, by its lease.
// Such a holder is waited for like a writer. Without BesideLeases the name is a *[store.KindError]
// then. Callers that want the lease get that error while the name is shared; they can take the
// write lock then.
func (rw *RWMutex) BesideLeases() *RWMutex {
	l := *rw.shared
	l.joins = true
	return &RWMutex{&l}
}

// Lock acquires the lock for writing. It blocks until the lock is free, ctx is done or the session
// ends. The rest is as with [Semaphore.Acquire].
func (rw *RWMutex) Lock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, MaxShares, false)
}

// TryLock is Lock if it can be had at once, and otherwise a *[HeldError]. The rest is as with
// [Semaphore.TryAcquire].
func (rw *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, MaxShares, true)
}

// RLock takes the lock for reading. It blocks until no writer holds it or waits before, ctx is done
// or the session ends. The rest is as with [Semaphore.Acquire].
func (rw *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, 1, false)
}

// TryRLock is RLock if it can be had at once, and otherwise a *[HeldError]. The rest is as with
// [Semaphore.TryAcquire].
func (rw *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, 1, true)
}

// Downgrade turns a hold for writing into a hold for reading, under a token of its own. The hold
// has to be from Lock or TryLock of this lock's session. No waiter writes between the
// two. Others may read from then on. The hold for writing ends first, as by [Hold.Release], so
// stop the writes under it before.
//
// Downgrade blocks until the store has answered, ctx is done or the session ends, and continues
// while the store fails. After an error neither hold exists. The exception is an error that says
// that the hold can't be downgraded. What may have reached the store is undone in the background,
// as long as the session lives.
func (rw *RWMutex) Downgrade(ctx context.Context, h *Hold) (*Hold, error) {
	l := rw.shared
	if h == nil || h.of != l.s || h.name != l.name || h.mine.Weight != l.limit {
		return nil, fmt.Errorf("downgrade %s: want a hold for writing, of this lock and its session", l.name)
	}
	if err := h.Check(); err != nil {
		return nil, fmt.Errorf("downgrade %s: %w", l.name, err)
	}
	reader := h.mine
	reader.ID, reader.Weight, reader.Token = rand.Text(), 1, 0
	var err error
	first := h.finish(func() error {
		err = l.replace(ctx, h.mine.ID, &reader)
		return err
	})
	switch {
	case !first:
		return nil, fmt.Errorf("downgrade %s: %w", l.name, ErrReleased)
	case err == nil:
		err = l.s.Check() // the session may have ended while the write was on its way
	}
	if err != nil {
		l.s.Background(func(ctx context.Context) {
			_ = l.remove(ctx, h.mine.ID, nil)
			_ = l.remove(ctx, reader.ID, nil)
		})
		return nil, fmt.Errorf("downgrade %s: %w", l.name, err)
	}
	return l.hold(reader), nil
}

// replace makes a holder of e in place of the one of that id, in one write, and sets e's token. It
// tries again for as long as the store fails.
func (l *shared) replace(ctx context.Context, id string, e *roster.Entry) error {
	joined, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session := l.s.Context()
	defer context.AfterFunc(session, func() { cancel(context.Cause(session)) })()
	for n := 0; ; n++ {
		err := store.Update(joined, l.st, l.key(), func(rec *store.Record) (bool, error) {
			f, err := l.find(joined, *rec, map[string]bool{})
			if err != nil {
				return false, err
			}
			if i := roster.Find(f.roster.Held, e.ID); i >= 0 { // by a write whose answer was lost
				*e = f.roster.Held[i]
				return false, nil
			}
			if roster.Find(f.roster.Held, id) < 0 {
				return false, fmt.Errorf("%w: the hold for writing isn't on the roster any more", lease.ErrLost)
			}
			// Else an earlier try, of unknown outcome, was under that one, and may yet land.
			if f.rec.Token >= e.Token {
				if e.Token, err = protocol.NextToken(f.rec.Token, l.m.Clock().Wall()); err != nil {
					return false, err
				}
			}
			f.rec.Token = e.Token
			f.roster.Remove(id)
			f.roster.Grant(*e, e.Token)
			*rec = f.rec
			return true, f.roster.Write(rec)
		})
		if err == nil || fatal(err) || errors.Is(err, lease.ErrLost) {
			return err
		}
		if err := l.pause(joined, n, err); err != nil {
			return err
		}
	}
}
