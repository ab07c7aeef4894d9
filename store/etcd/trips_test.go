package etcd

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

const (
	txnCall   = "/etcdserverpb.KV/Txn"
	rangeCall = "/etcdserverpb.KV/Range"
)

// Acquire of a remembered name, renew and release take one round trip each; acquire of a new name, and learning who holds it instead, two.
func TestRoundTrips(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	prefix, traffic := newPrefix(t), &wire{}
	clk := clocktest.New(0) // so that there is a renewal when the test says so, and no other
	manager := func(s store.Store) *lease.Manager {
		m, err := lease.NewManager(s, lease.Options{TTL: time.Hour, Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	m := manager(open(t, dial(t, srv.Addr, traffic.options()...), prefix))
	other := manager(open(t, dial(t, srv.Addr), prefix))
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
	// Where locks were kept before names had kinds is read once for each name.
	expect("acquire of a new name", rangeCall, txnCall)
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
	expect("acquire of a name that another holds", rangeCall, txnCall)

	renewed, err := m.TryAcquire(t.Context(), "renewed")
	if err != nil {
		t.Fatal(err)
	}
	expect("acquire of another new name", rangeCall, txnCall)
	before := renewed.ValidUntil()
	clk.Jump(25 * time.Minute)
	eventually(t, "a renewal", func() bool { return renewed.ValidUntil() > before })
	expect("renew", txnCall)

	s := open(t, dial(t, srv.Addr, traffic.options()...), prefix)
	if _, err := s.Get(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	expect("read", rangeCall)
}
