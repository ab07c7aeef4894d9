package main

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// slowFrom is how long a request takes that is told of.
const slowFrom = 100 * time.Millisecond

// timed is a store that tells which requests were slow.
type timed struct {
	store.Store
	teller *teller
}

var _ store.Waiter = (*timed)(nil)

func (s *timed) Get(ctx context.Context, key string) (store.Record, error) {
	defer s.measure("read")()
	return s.Store.Get(ctx, key)
}

func (s *timed) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	defer s.measure("write")()
	return s.Store.Put(ctx, rec)
}

// Wait implements store.Waiter. How long it takes says nothing.
func (s *timed) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return store.Wait(ctx, s.Store, key, version)
}

func (s *timed) measure(what string) func() {
	start := clock.System().Now()
	return func() {
		if end := clock.System().Now(); end.Sub(start) >= slowFrom {
			s.teller.tell(event{Kind: slow, Since: start, At: end, Text: what})
		}
	}
}
