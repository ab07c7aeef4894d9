package storetest

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// replicatedBy returns an instance of a pair whose handles open returns.
func replicatedBy(open func(*faulty.Pair) store.Store) Instance {
	clk := clock.NewFake(0)
	pair := faulty.NewPair(clk)
	inst := instanceOf(func() store.Store { return open(pair) })
	inst.Clock = clk
	inst.Detach = func() error { pair.Detach(); return nil }
	inst.Attach = func() error { pair.Attach(); return nil }
	inst.FailOver = func() error { pair.FailOver(); return nil }
	return inst
}

func pairOf(worth store.ReadWorth) Instance {
	return replicatedBy(func(p *faulty.Pair) store.Store { return p.Open(worth) })
}

// careless is a handle that promises what it doesn't keep: what is not nil here takes the place of what is right.
type careless struct {
	*faulty.Replicated
	get     func(ctx context.Context, key string) (store.Record, error)
	put     func(ctx context.Context, rec store.Record) (store.Record, error)
	wait    func(ctx context.Context, key, version string) (store.Record, error)
	confirm func(ctx context.Context, key string) (store.Record, error)
}

func (c careless) Get(ctx context.Context, key string) (store.Record, error) {
	if c.get != nil {
		return c.get(ctx, key)
	}
	return c.Replicated.Get(ctx, key)
}

func (c careless) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if c.put != nil {
		return c.put(ctx, rec)
	}
	return c.Replicated.Put(ctx, rec)
}

func (c careless) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if c.wait != nil {
		return c.wait(ctx, key, version)
	}
	return c.Replicated.Wait(ctx, key, version)
}

func (c careless) Confirm(ctx context.Context, key string) (store.Record, error) {
	if c.confirm != nil {
		return c.confirm(ctx, key)
	}
	return c.Replicated.Confirm(ctx, key)
}

// brokenReplicas take what the primary has for what will be there when it has died.
var brokenReplicas = []breakage{
	unkept("settles by a plain read", func(c *careless, primary *memory.Store) { c.get = primary.Get }, "Unreplicated"), // whose holders ask once more by a write
	unkept("settles by what a Wait brings", func(c *careless, primary *memory.Store) { c.wait = primary.Wait }, "Unreplicated"),
	unkept("settles by a conflict with its own write", func(c *careless, primary *memory.Store) {
		c.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			var conflict *store.ConflictError
			if _, err := primary.Put(ctx, rec); errors.As(err, &conflict) {
				return store.Record{}, err
			}
			return store.Record{}, driver.Unknown(rec.Key, faulty.ErrLost)
		}
	}, "Unreplicated"),
	unkept("confirms by a plain read", func(c *careless, primary *memory.Store) { c.confirm = primary.Get }, "Unreplicated", "Failover"),
	unkept("acknowledges what no replica has", func(c *careless, primary *memory.Store) { c.put = primary.Put }, "Unreplicated", "Failover"),
}

func unkept(name string, spoil func(c *careless, primary *memory.Store), caught ...string) breakage {
	return breakage{name, caught, func() Instance {
		return replicatedBy(func(p *faulty.Pair) store.Store {
			c := &careless{Replicated: p.Open(store.ReadLeader)}
			spoil(c, p.Primary())
			return c
		})
	}}
}
