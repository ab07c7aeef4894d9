package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestFinding_S6_AReadDoesNotSettleWhatNoReplicaHas: WAIT says that nobody has the write, and the primary shows it.
func TestFinding_S6_AReadDoesNotSettleWhatNoReplicaHas(t *testing.T) {
	primary := servers.Redis(t)
	replica := servers.Redis(t, servers.ReplicaOf(primary))
	hasty := mustOpen(t, primary, primary.Addr, Options{Replicas: 1, ReplicaWait: 100 * time.Millisecond})
	patient := mustOpen(t, primary, primary.Addr, Options{Replicas: 1, ReplicaWait: 30 * time.Second})
	rec := storetest.MustPut(t, patient, held("k", 1))
	gone := storetest.MustPut(t, patient, held("gone", 1))
	replica.Pause()
	lonely := rec
	lonely.Nonce = "lonely"
	for range 2 { // the second time it is a conflict with itself
		if _, err := hasty.Put(t.Context(), lonely); !errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrConflict) {
			t.Errorf("a write that no replica has: %v", err)
		}
	}
	if err := hasty.Delete(t.Context(), "gone", gone.Version); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("a deletion that no replica has: %v", err)
	}
	if got, err := patient.Get(t.Context(), "k"); err != nil || got.Nonce != "lonely" {
		t.Fatalf("the primary doesn't show the write: %+v, %v", got, err)
	}
	for what, try := range map[string]func() error{
		"Get":                 func() error { _, err := hasty.Get(t.Context(), "k"); return err },
		"Get of what is gone": func() error { _, err := hasty.Get(t.Context(), "gone"); return err },
		"Wait":                func() error { _, err := hasty.Wait(t.Context(), "k", rec.Version); return err },
		"Confirm":             func() error { _, err := hasty.Confirm(t.Context(), "k"); return err },
	} {
		if err := try(); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s settled what no replica has: %v", what, err)
		}
	}
	replica.Resume()
	if got := eventually(t, hasty, "k"); got.Nonce != "lonely" {
		t.Errorf("with the replica back: %+v", got)
	}
	version := raw(t, primary).HGet(t.Context(), DefaultPrefix+"k", "version").Val()
	if got, err := patient.Confirm(t.Context(), "k"); err != nil || got.Version != version {
		t.Errorf("Confirm changed version %q: %+v, %v", version, got, err)
	}
	if _, err := patient.Confirm(t.Context(), "gone"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Confirm of a missing key: %v", err)
	}
	if n := raw(t, primary).Exists(t.Context(), DefaultPrefix+"gone").Val(); n != 0 {
		t.Error("Confirm of a missing key left something behind")
	}
}

func eventually(t testing.TB, s store.Store, key string) (rec store.Record) {
	t.Helper()
	storetest.Eventually(t, func() (err error) {
		rec, err = s.Get(t.Context(), key)
		return err
	})
	return rec
}

// failovers is how many rounds TestFinding_S6_Failover has.
func failovers(t testing.TB) int {
	t.Helper()
	text := os.Getenv("LEASEHOLD_FAILOVERS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LEASEHOLD_FAILOVERS=%q: want a number of rounds from 1", text)
	}
	return n
}

// TestFinding_S6_Failover: the replica hears of nothing any more while one process renews a lease and claims another, the primary
// dies, the replica is promoted, and a second process wants both. There are never two holders, and no term that was announced
// is lost.
func TestFinding_S6_Failover(t *testing.T) {
	for range failovers(t) {
		failOver(t)
	}
}

// announced are the holds that two processes were told of.
type announced struct {
	mu  sync.Mutex
	all []*lease.Lease
}

func (h *announced) add(l *lease.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, l)
}

// of returns how many leases of that name are valid now, and the highest token of it that a process was told.
func (h *announced) of(name string) (holders int, newest fence.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.all {
		if l.Key() != name {
			continue
		}
		newest = max(newest, l.Token())
		if l.Check() == nil {
			holders++
		}
	}
	return holders, newest
}

func failOver(t *testing.T) {
	primary := servers.Redis(t)
	replica := servers.Redis(t)
	between := servers.Proxy(t, primary.Addr)
	host, port, err := net.SplitHostPort(between.Addr)
	if err != nil {
		t.Fatal(err)
	}
	copied := raw(t, replica)
	do(t, copied, "replicaof", host, port)
	var addr atomic.Value
	addr.Store(primary.Addr)
	open := func(name string) *lease.Manager {
		opts := options(t, primary, primary.Addr)
		opts.ReadTimeout = 5 * time.Second
		opts.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
		}
		st, err := openOwner(opts, Options{Prefix: fmt.Sprintf("%s:", t.Name()), Replicas: 1, ReplicaWait: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		m, err := lease.NewManager(st, lease.Options{TTL: 3 * time.Second, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close(); st.Close() })
		return m
	}
	a, told := open("a"), &announced{}
	acquiring, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	var claims sync.WaitGroup
	defer claims.Wait()
	defer stop()
	kept, err := a.Acquire(acquiring, "kept") // also when the replica has yet to follow
	if err != nil {
		t.Fatal(err)
	}
	told.add(kept)
	between.Cut()
	claim := func(m *lease.Manager, name string) {
		claims.Go(func() {
			if l, err := m.Acquire(acquiring, name); err == nil {
				told.add(l)
			}
		})
	}
	claim(a, "claimed")
	// The renewals and the claim reach the primary, which shows them, and no replica.
	select {
	case <-kept.Context().Done():
	case <-time.After(10 * time.Second):
		t.Error("a lease is renewed, and no replica knows")
	}
	time.Sleep(3 * time.Second)
	for _, name := range []string{"kept", "claimed"} {
		if n, _ := told.of(name); n != 0 {
			t.Errorf("%s is held, and no replica knows", name)
		}
	}
	primary.Kill()
	do(t, copied, "replicaof", "no", "one")
	second := servers.Redis(t, servers.ReplicaOf(replica)) // who acknowledges now
	defer second.Stop()
	addr.Store(replica.Addr)
	b := open("b")
	for _, name := range []string{"kept", "claimed"} {
		claim(b, name)
		claim(a, name) // again, for the lease that was lost
	}
	for there := 0; there < 2; time.Sleep(time.Millisecond) {
		there = 0
		for _, name := range []string{"kept", "claimed"} {
			n, _ := told.of(name)
			if n > 1 {
				t.Fatalf("%s has %d holders", name, n)
			}
			there += n
		}
		if acquiring.Err() != nil {
			t.Fatal("nobody holds them though the replica was promoted")
		}
	}
	for _, name := range []string{"kept", "claimed"} {
		_, newest := told.of(name)
		rec, err := recordOf(acquiring, copied, t.Name()+":"+name)
		if err != nil || rec.Token < newest {
			t.Errorf("%s: token %d was acknowledged, and %d is left: %v", name, newest, rec.Token, err)
		}
	}
}

// recordOf reads a record as it is stored.
func recordOf(ctx context.Context, c *goredis.Client, key string) (store.Record, error) {
	text, err := c.HGet(ctx, key, "record").Result()
	if err != nil {
		return store.Record{}, err
	}
	return store.UnmarshalApart([]byte(text), nil)
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
