package sessions

import (
	"context"
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
func (b bounded) Get(ctx context.Context, key string) (store.Record, error) {
	ctx, cancel := clock.WithTimeout(ctx, b.m.Clock(), b.m.TTL()/10)
	defer cancel()
	return b.Store.Get(ctx, key)
}

// Put implements [store.Store].
func (b bounded) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	ctx, cancel := clock.WithTimeout(ctx, b.m.Clock(), b.m.TTL()/10)
	defer cancel()
	return b.Store.Put(ctx, rec)
}
