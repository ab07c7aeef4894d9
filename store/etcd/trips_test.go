package etcd

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

const (
	txnCall   = "/etcdserverpb.KV/Txn"
	rangeCall = "/etcdserverpb.KV/Range"
)

// Acquire of a new or remembered name, renew, release, and learning who holds it instead take one round trip each.
func TestRoundTrips(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	prefix, traffic := newPrefix(t), &wire{}
	manager := func(s store.Store, ttl time.Duration) *lease.Manager {
		m, err := lease.NewManager(s, lease.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	m := manager(open(t, dial(t, srv.Addr, traffic.options()...), prefix), time.Hour)
	other := manager(open(t, dial(t, srv.Addr), prefix), time.Hour)
	expect := func(what string, calls ...string) {
		t.Helper()
		if got := traffic.take(); !slices.Equal(got, calls) {
			t.Errorf("%s: %v, want %v", what, got, calls)
		}
	}
	l, err := m.TryAcquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	expect("acquire of a new name", txnCall)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("release", txnCall)
	if l, err = m.TryAcquire(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	expect("acquire of a remembered name", txnCall)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	traffic.take()

	if _, err := other.TryAcquire(t.Context(), "taken"); err != nil {
		t.Fatal(err)
	}
	var held *lease.HeldError
	if _, err := m.TryAcquire(t.Context(), "taken"); !errors.As(err, &held) {
		t.Fatalf("acquire of a name that another holds: %v", err)
	}
	expect("acquire of a name that another holds", txnCall)

	quick := manager(open(t, dial(t, srv.Addr, traffic.options()...), prefix), 300*time.Millisecond)
	renewed, err := quick.TryAcquire(t.Context(), "renewed")
	if err != nil {
		t.Fatal(err)
	}
	before := renewed.ValidUntil()
	eventually(t, "a renewal", func() bool { return renewed.ValidUntil() > before })
	expect("acquire and renew", txnCall, txnCall)

	s := open(t, dial(t, srv.Addr, traffic.options()...), prefix)
	if _, err := s.Get(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	expect("read", rangeCall)
}
