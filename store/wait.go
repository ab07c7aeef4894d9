package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the pause between two reads of a Wait that polls.
const (
	pollMin = 20 * time.Millisecond
	pollMax = time.Second
)

// Wait returns the record under key once its stored version is another than version, as [Waiter] says. It uses the
// store's own Wait, or else polls: every 20 ms at first, then ever more slowly, once a second at the slowest, with jitter.
// It blocks until the record changes, ctx is done or a read fails.
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
		timer := time.NewTimer(pause - rand.N(pause/4))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Record{}, context.Cause(ctx)
		}
		pause = min(pause*3/2, pollMax)
	}
}
