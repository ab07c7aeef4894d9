package identity

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// patient is a store with bounded requests, which gives a read a second, longer chance: a store
// that is busy is slow, and a read can be repeated.
type patient struct {
	store.Store
	m *lease.Manager
}

// Get implements [store.Store].
func (p patient) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := p.Store.Get(ctx, key)
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return rec, err
	}
	ctx, cancel := clock.WithTimeout(ctx, p.m.Clock(), p.m.TTL()/2)
	defer cancel()
	return p.m.Store().Get(ctx, key)
}
