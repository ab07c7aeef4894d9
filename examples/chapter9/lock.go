package chapter9

import (
	"context"
	"errors"
	"time"
)

// LockBySleep tries, and sleeps between tries.
func LockBySleep(ctx context.Context, s Service, key, owner string, ttl, pause time.Duration) (Held, error) {
	for {
		h, err := s.Create(ctx, key, owner, ttl)
		if !errors.Is(err, ErrHeld) {
			return h, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Held{}, ctx.Err()
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

// Keep is the loop of a renewable lock. It renews h every third of ttl until ctx ends. When the lock is lost, or no renewal has succeeded for four fifths of ttl, it calls
// handleLockLost and returns.
func Keep(ctx context.Context, s Service, h Held, ttl time.Duration, handleLockLost func(error)) {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	sent := time.Now() // of the last request that has succeeded, before it left
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		within, cancel := context.WithDeadline(ctx, sent.Add(ttl-ttl/5))
		err := s.Renew(within, h)
		cancel()
		switch {
		case err == nil:
			sent = now
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLost) || time.Since(sent) >= ttl-ttl/5:
			handleLockLost(err)
			return
		}
	}
}
