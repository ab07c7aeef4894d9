package lease_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

type promising struct {
	store.Store
	fencing store.Fencing
}

func (p promising) Properties() store.Properties {
	return store.Properties{Engine: "promising", Fencing: p.fencing}
}

type silent struct{ store.Store }

// changing is a store that comes to be worth less while it is open.
type changing struct {
	*memory.Store
	perPrimary atomic.Bool
}

func (c *changing) Properties() store.Properties {
	p := c.Store.Properties()
	if c.perPrimary.Load() {
		p.Fencing = store.FencingPerPrimary
	}
	return p
}

// What is demanded of a store is demanded at each claim and each renewal, not only when the manager is made.
func TestFinding_S8_WhatIsDemandedIsDemandedThroughout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewFake(0)
		st := &changing{Store: memory.New(memory.Options{Clock: clk})}
		defer st.Close()
		var reason error
		m, err := lease.NewManager(st, lease.Options{
			TTL: ttl, Fencing: store.FencingLinearizable, Clock: clk, OnRetry: func(_ string, err error) { reason = err },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		kept, err := m.Acquire(t.Context(), "kept")
		if err != nil {
			t.Fatal(err)
		}
		released, err := m.Acquire(t.Context(), "released")
		if err != nil {
			t.Fatal(err)
		}
		st.perPrimary.Store(true)
		if _, err := m.TryAcquire(t.Context(), "new"); err == nil || !strings.Contains(err.Error(), "good per primary") {
			t.Errorf("a name is taken: %v", err)
		}
		if err := released.Release(t.Context()); err != nil {
			t.Errorf("a release: %v", err)
		}
		time.Sleep(ttl)
		if kept.Check() == nil {
			t.Error("a lease is renewed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		if _, err := m.Acquire(ctx, "kept"); err == nil || reason == nil || !strings.Contains(reason.Error(), "good per primary") {
			t.Errorf("a name is taken: %v, and OnRetry was told of %v", err, reason)
		}
		st.perPrimary.Store(false)
		ctx, cancel = context.WithTimeout(t.Context(), ttl)
		defer cancel()
		if _, err := m.Acquire(ctx, "kept"); err != nil {
			t.Errorf("with all that is demanded: %v", err)
		}
	})
}

// A store whose tokens are worth less than is demanded is refused when the manager is made, not when it has failed over.
func TestManagerRefusesAStoreWithLessFencing(t *testing.T) {
	mem := memory.New(memory.Options{})
	defer mem.Close()
	for name, c := range map[string]struct {
		st   store.Store
		want store.Fencing
		says string
	}{
		"linearizable":             {mem, store.FencingLinearizable, ""},
		"more than is demanded":    {mem, store.FencingPerPrimary, ""},
		"nothing is demanded":      {silent{mem}, 0, ""},
		"per primary, unasked":     {promising{mem, store.FencingPerPrimary}, 0, ""},
		"per primary will do":      {promising{mem, store.FencingPerPrimary}, store.FencingPerPrimary, ""},
		"per primary won't do":     {promising{mem, store.FencingPerPrimary}, store.FencingLinearizable, "tokens of promising are good per primary"},
		"it doesn't say":           {silent{mem}, store.FencingLinearizable, "doesn't say"},
		"not a kind there ever is": {promising{mem, store.FencingPerPrimary}, store.FencingLinearizable + 1, `want "linearizable"`},
	} {
		m, err := lease.NewManager(c.st, lease.Options{Fencing: c.want})
		switch {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			m.Close()
		}
	}
}
