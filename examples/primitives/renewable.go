package primitives

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// RenewableLock is a lock that a dead holder loses. Each process has one of its own; it is not safe
// for concurrent use.
type RenewableLock struct {
	Store store.Store
	Clock clock.Clock // of this machine
	Name  string
	Me    string        // in no other process
	TTL   time.Duration // the same for all

	token fence.Token
	until clock.Instant // valid until then, as a holder

	seen  string        // the version that was last seen, as one who wants it
	since clock.Instant // and since when it has been seen unchanged
}

// Valid reports whether this process may rely on the lock at this instant.
func (l *RenewableLock) Valid() bool { return l.Clock.Now() < l.until }

// Token returns the token of the term that was last begun.
func (l *RenewableLock) Token() fence.Token { return l.token }

// TryLock takes the lock if it is free, or if its record has not changed for the whole TTL.
func (l *RenewableLock) TryLock(ctx context.Context) error {
	sent := l.Clock.Now() // before the request: the reply may be slow
	err := store.Update(ctx, l.Store, l.Name, func(rec *store.Record) (write bool, err error) {
		now := l.Clock.Now()
		if rec.Version != l.seen {
			l.seen, l.since = rec.Version, now
		}
		if left := l.TTL - now.Sub(l.since); rec.Owner != "" && left > 0 {
			return false, fmt.Errorf("%s: %w by %s, for %v at least", l.Name, ErrHeld, rec.Owner, left)
		}
		sent = now
		rec.Owner, rec.Token, rec.TTL = l.Me, rec.Token+1, l.TTL
		l.token = rec.Token
		return true, nil
	})
	return l.extend(sent, err)
}

// Renew shows that the holder is alive. It is called every third of the TTL, or so.
func (l *RenewableLock) Renew(ctx context.Context) error {
	sent := l.Clock.Now()
	err := store.Update(ctx, l.Store, l.Name, func(rec *store.Record) (write bool, err error) {
		if rec.Owner != l.Me || rec.Token != l.token {
			return false, fmt.Errorf("%s: %w by %s", l.Name, ErrNotHeld, l.Me)
		}
		return true, nil // the write itself is the sign of life: it makes a new version
	})
	return l.extend(sent, err)
}

// extend has the lock be valid for the TTL from before the request, less a margin for clocks that
// run at other rates.
func (l *RenewableLock) extend(sent clock.Instant, err error) error {
	if err == nil {
		l.until = sent.Add(l.TTL - l.TTL/5)
	}
	return err
}
