package nats

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
)

// Acquire of a remembered name, renew and release are one round trip each. A name that is met for the first time is read first.
func TestRoundTrips(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	counted := dial(t, srv.Addr)
	manager := func(s *Store, renew time.Duration) *lease.Manager {
		// An answer that takes long must not have a renewal sent again.
		m, err := lease.NewManager(s, lease.Options{TTL: 3 * time.Hour, Renew: renew, Attempt: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	s := open(t, counted, bucket)
	m, other := manager(s, time.Hour), manager(open(t, js, bucket), time.Hour)
	before := counted.Conn().Stats().OutMsgs
	expect := func(what string, want uint64) {
		t.Helper()
		now := counted.Conn().Stats().OutMsgs
		if now-before != want {
			t.Errorf("%s: %d requests, want %d", what, now-before, want)
		}
		before = now
	}
	l, err := m.TryAcquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	expect("acquire of a new name", 3) // both read: its record, and where locks were kept before names had kinds
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("release", 1)
	if l, err = m.TryAcquire(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	expect("acquire of a remembered name", 1)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("release", 1)

	if _, err := other.TryAcquire(t.Context(), "taken"); err != nil {
		t.Fatal(err)
	}
	var held *lease.HeldError
	if _, err := m.TryAcquire(t.Context(), "taken"); !errors.As(err, &held) {
		t.Fatalf("acquire of a name that another holds: %v", err)
	}
	expect("acquire of a name that another holds", 1)

	quick := manager(s, 2*time.Second)
	renewed, err := quick.TryAcquire(t.Context(), "renewed")
	if err != nil {
		t.Fatal(err)
	}
	until := renewed.ValidUntil()
	eventually(t, "a renewal", func() bool { return renewed.ValidUntil() > until })
	expect("acquire of a new name and renew", 4)
}
