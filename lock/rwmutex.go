package lock

import (
	"context"

	"github.com/leasehold/leasehold/lease"
)

// RWMutex is held by any number of readers, up to [MaxShares] - 1, or by one writer. It is first come, first served, so readers don't
// keep a writer waiting for ever, nor writers a reader. It is safe for concurrent use.
type RWMutex struct{ shared *shared }

// NewRWMutex returns the read/write lock of that name, as the session uses it. It does no I/O.
func NewRWMutex(s *lease.Session, name string) (*RWMutex, error) {
	l, err := newShared(s, name, kindRW, MaxShares, true)
	if err != nil {
		return nil, err
	}
	return &RWMutex{l}, nil
}

// BesideLeases returns the same lock for a name that others hold alone, by its lease, at times: who does is waited for like a writer.
// Otherwise such a name is a *[store.KindError]. Those others get that error while the name is shared; they take the write lock then.
func (rw *RWMutex) BesideLeases() *RWMutex {
	l := rw.shared
	return &RWMutex{&shared{s: l.s, m: l.m, st: l.st, watch: l.watch, name: l.name, kind: l.kind, limit: l.limit, fair: l.fair, joins: true}}
}

// Lock takes the lock for writing. It blocks until nobody else holds it, ctx is done or the session ends. The rest is as with
// [Semaphore.Acquire].
func (rw *RWMutex) Lock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, MaxShares, false)
}

// TryLock is Lock if it can be had at once, and otherwise a *[HeldError]. The rest is as with [Semaphore.TryAcquire].
func (rw *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, MaxShares, true)
}

// RLock takes the lock for reading. It blocks until no writer holds it or waits before, ctx is done or the session ends. The
// rest is as with [Semaphore.Acquire].
func (rw *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, 1, false)
}

// TryRLock is RLock if it can be had at once, and otherwise a *[HeldError]. The rest is as with [Semaphore.TryAcquire].
func (rw *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return rw.shared.acquire(ctx, 1, true)
}
