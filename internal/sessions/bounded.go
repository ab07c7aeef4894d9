package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Manager is what has to be known of a manager of leases: that of package lease is one.
type Manager interface {
	Store() store.Store
	Clock() clock.Clock
	TTL() time.Duration
}

// Bounded returns the manager's store with a limit on each Get and each Put, so that one that gets
// no answer isn't all that a caller does: a tenth of the manager's TTL. A Put that it ends has an
// unknown outcome. It doesn't push: wait on the manager's own store.
func Bounded(m Manager) store.Store { return bounded{m.Store(), m} }

// Pushes reports whether the store pushes, or the one behind a [Bounded] does.
func Pushes(st store.Store) bool {
	if b, ok := st.(bounded); ok {
		st = b.Store
	}
	return store.Describe(st).Push
}

type bounded struct {
	store.Store
	m Manager
}

// Get implements [store.Store].
func (b bounded) Get(ctx context.Context, key string) (rec store.Record, err error) {
	err = b.within(ctx, func(ctx context.Context) error {
		rec, err = b.Store.Get(ctx, key)
		return err
	})
	return rec, err
}

// Put implements [store.Store].
func (b bounded) Put(ctx context.Context, rec store.Record) (now store.Record, err error) {
	err = b.within(ctx, func(ctx context.Context) error {
		now, err = b.Store.Put(ctx, rec)
		return err
	})
	return now, err
}

// within sends a request, and says of one that had no answer in time how long that was.
func (b bounded) within(ctx context.Context, request func(context.Context) error) error {
	limit := b.m.TTL() / 10
	inner, cancel := clock.WithTimeout(ctx, b.m.Clock(), limit)
	defer cancel()
	err := request(inner)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer from the store in %v: %w", limit, err)
	}
	return err
}
