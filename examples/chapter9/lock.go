package chapter9

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// LockBySleep tries, and sleeps between tries.
func LockBySleep(ctx context.Context, s Service, key, owner string, ttl, pause time.Duration) (Held, error) {
	for {
		h, err := s.Create(ctx, key, owner, ttl)
		if !errors.Is(err, ErrHeld) {
			return h, err
		}
		if err := clock.Sleep(ctx, clock.System(), pause); err != nil {
			return Held{}, err
		}
	}
}

// LockByWatch tries again when the service says that the key has changed.
func LockByWatch(ctx context.Context, s Service, key, owner string, ttl time.Duration) (Held, error) {
	for {
		h, err := s.Create(ctx, key, owner, ttl)
		if !errors.Is(err, ErrHeld) {
			return h, err
		}
		if err := s.Changed(ctx, key); err != nil {
			return Held{}, err
		}
	}
}

// Unlock has the bug: it deletes the key, whoever's it is by now.
func Unlock(ctx context.Context, s Service, key string) error {
	return s.Remove(ctx, key)
}

// UnlockVersion deletes the key of this term, and no other.
func UnlockVersion(ctx context.Context, s Service, h Held) error {
	return s.RemoveVersion(ctx, h)
}

// Keep is the loop of a renewable lock. It renews h every third of ttl until ctx ends. When the
// lock is lost, or no renewal has succeeded for four fifths of ttl, it calls handleLockLost and
// returns.
func Keep(ctx context.Context, c clock.Clock, s Service, h Held, ttl time.Duration, handleLockLost func(error)) {
	end := c.Now().Add(ttl - ttl/5)
	for {
		if clock.Sleep(ctx, c, min(ttl/3, end.Sub(c.Now()))) != nil {
			return
		}
		sent := c.Now() // before the request leaves
		within, cancel := clock.WithDeadline(ctx, c, end)
		err := s.Renew(within, h)
		cancel()
		switch {
		case err == nil:
			end = sent.Add(ttl - ttl/5)
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLost) || c.Now() >= end:
			handleLockLost(err)
			return
		}
	}
}
