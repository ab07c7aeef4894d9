package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the pause between two reads of a Wait that polls, and between two writes of an
// Update whose outcomes are unknown.
const (
	pollMin = 20 * time.Millisecond
	pollMax = time.Second
)

// Wait blocks until the stored version under key is another than version, as [Waiter] says, and
// returns the record. It uses the store's own Wait, or else polls. It polls every 20 ms at first,
// then ever more slowly, once a second at the slowest, with jitter. Wait blocks until the record
// changes, ctx is done or a read fails.
func Wait(ctx context.Context, s Store, key, version string) (Record, error) {
	if w, ok := s.(Waiter); ok {
		return w.Wait(ctx, key, version)
	}
	pause := pollMin
	for {
		rec, err := Load(ctx, s, key)
		if err != nil || rec.Version != version {
			return rec, err
		}
		if err := sleep(ctx, pause); err != nil {
			return Record{}, err
		}
		pause = min(pause*3/2, pollMax)
	}
}

// sleep blocks for d, less up to a quarter at random, and returns nil, or until ctx is done, and
// returns its cause.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d - rand.N(d/4))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
