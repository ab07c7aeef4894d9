package redis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestFinding_S6_Failovers: WAIT says that no replica has a write, and the primary shows it. Then the primary dies, and the replica is
// promoted.
func TestFinding_S6_Failovers(t *testing.T) {
	storetest.RunFailovers(t, func(t testing.TB) storetest.Instance {
		primary, replica := servers.Redis(t), servers.Redis(t)
		between := servers.Proxy(t, primary.Addr)
		host, port, err := net.SplitHostPort(between.Addr)
		if err != nil {
			t.Fatal(err)
		}
		copied, prefix := raw(t, replica), newPrefix()
		do(t, copied, "replicaof", host, port)
		var addr atomic.Value
		addr.Store(primary.Addr)
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				opts := options(t, primary, primary.Addr)
				opts.ReadTimeout = 5 * time.Second
				opts.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
				}
				return openOwner(opts, Options{Prefix: prefix, Replicas: 1, ReplicaWait: 500 * time.Millisecond})
			},
			Detach: func() error { between.Cut(); return nil },
			Attach: func() error { between.Heal(); return nil },
			FailOver: func() error {
				primary.Kill()
				do(t, copied, "replicaof", "no", "one")
				servers.Redis(t, servers.ReplicaOf(replica)) // who acknowledges now
				addr.Store(replica.Addr)
				return nil
			},
		}
	})
}

// TestFinding_S6_ConfirmLeavesNothingBehind: it is a write that changes nothing.
func TestFinding_S6_ConfirmLeavesNothingBehind(t *testing.T) {
	primary := servers.Redis(t, servers.Shared())
	s := mustOpen(t, primary, primary.Addr, Options{Prefix: newPrefix()})
	if _, err := s.Confirm(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Confirm of a missing key: %v", err)
	}
	if n := raw(t, primary).Exists(t.Context(), s.opts.Prefix+"none").Val(); n != 0 {
		t.Error("Confirm of a missing key left something behind")
	}
}

// TestFinding_S6_ALeaseNeedsItsReplicas: there is no replica at all.
func TestFinding_S6_ALeaseNeedsItsReplicas(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	st := mustOpen(t, srv, srv.Addr, Options{Prefix: newPrefix(), Replicas: 1, ReplicaWait: 50 * time.Millisecond})
	m, err := lease.NewManager(st, lease.Options{TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if l, err := m.Acquire(ctx, "k"); err == nil {
		t.Fatalf("%v is held, and no replica acknowledged it", l)
	}
}
