package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// syncPair is a primary whose commits wait for its standby, and the network between them: what is on its way when that is cut never
// arrives.
func syncPair(t testing.TB) (primary, standby *servers.Server, both string, between *servers.Network) {
	t.Helper()
	primary, standby, both = pair(t)
	between = servers.Proxy(t, primary.Addr)
	_, port, err := net.SplitHostPort(between.Addr)
	if err != nil {
		t.Fatal(err)
	}
	follower := admin(t, standby.URL)
	mustExec(t, follower, "ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 user=postgres sslmode=disable port="+port+"'")
	mustExec(t, follower, "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var n int
		err := follower.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming' AND sender_port::text = $1", port).Scan(&n)
		if err == nil && n == 1 {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the standby doesn't follow through the proxy: %v", err)
		}
	}
	conn := admin(t, primary.URL)
	mustExec(t, conn, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	mustExec(t, conn, "SELECT pg_reload_conf()")
	replicates(t, conn, "sync_state", "sync")
	mustExec(t, conn, "CHECKPOINT") // by the process that has commits wait, which hears of the setting by itself
	return primary, standby, both, between
}

// TestFinding_S5_AReadDoesNotSettleWhatIsNotReplicated: the standby is gone, the deadline of a write passes, and the primary shows
// the record though no standby has it.
func TestFinding_S5_AReadDoesNotSettleWhatIsNotReplicated(t *testing.T) {
	primary, _, both, between := syncPair(t)
	table := newTable(t, primary.URL)
	s := mustOpen(t, both, Options{Table: table})
	other := mustOpen(t, both, Options{Table: table})
	kept := storetest.MustPut(t, s, held("kept", 1))
	cancelled := storetest.MustPut(t, s, held("cancelled", 1))
	between.Cut()
	short := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }

	renewal := kept
	renewal.Nonce = "renewal"
	ctx, cancel := short()
	defer cancel()
	if _, err := s.Put(ctx, renewal); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("a write that no standby has: %v", err)
	}
	shown := untilShown(t, other, "kept", "renewal")
	for what, try := range map[string]func(context.Context) error{
		"Get":     func(ctx context.Context) error { _, err := s.Get(ctx, "kept"); return err },
		"Confirm": func(ctx context.Context) error { _, err := other.Confirm(ctx, "kept"); return err },
		"Wait":    func(ctx context.Context) error { _, err := s.Wait(ctx, "kept", kept.Version); return err },
		"the same Put again": func(ctx context.Context) error {
			_, err := s.Put(ctx, renewal)
			if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("the same Put again: %v, want an unknown outcome", err)
			}
			return err
		},
	} {
		ctx, cancel := short()
		if err := try(ctx); err == nil || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s settled what no standby has: %v", what, err)
		}
		cancel()
	}

	// The server itself gives up to wait, and reports success.
	outcome := make(chan error, 1)
	go func() {
		change := cancelled
		change.Nonce = "cancelled"
		_, err := s.Put(t.Context(), change)
		outcome <- err
	}()
	untilCancelled(t, admin(t, primary.URL), table)
	if err := <-outcome; !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, errUnreplicated) {
		t.Errorf("a write whose wait for the standby was cancelled: %v", err)
	}

	between.Heal()
	if got := eventually(t, s, "kept"); got.Nonce != "renewal" || got.Version != shown.Version {
		t.Errorf("with the standby back: %+v", got)
	}
	if got := eventually(t, s, "cancelled"); got.Nonce != "cancelled" {
		t.Errorf("with the standby back: %+v", got)
	}
}

// untilShown returns the record of that nonce when a plain read shows it.
func untilShown(t testing.TB, s *Store, key, nonce string) store.Record {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		rec, err := s.Get(t.Context(), key)
		if err == nil && rec.Nonce == nonce {
			return rec
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the primary doesn't show what it committed: %+v, %v", rec, err)
		}
	}
}

// untilCancelled has the server cancel the wait of a commit to that table for the standby.
func untilCancelled(t testing.TB, conn *pgx.Conn, table string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var n int
		err := conn.QueryRow(t.Context(), "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%UPDATE \""+table+"\"%'").Scan(&n)
		if err == nil && n > 0 {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no commit waits for the standby: %v", err)
		}
	}
}

// TestFinding_S8_WhatTheFencingDependsOnIsLookedAtAgain: an asynchronous standby comes after Open.
func TestFinding_S8_WhatTheFencingDependsOnIsLookedAtAgain(t *testing.T) {
	primary := servers.Postgres(t)
	table := newTable(t, primary.URL)
	s := mustOpen(t, primary.URL, Options{Table: table})
	if got := s.Properties().Fencing; got != store.FencingLinearizable {
		t.Fatalf("alone: fencing %q", got)
	}
	mustExec(t, admin(t, primary.URL), "SELECT pg_create_physical_replication_slot('standby', true)")
	s.watch.mu.Lock()
	s.watch.due = 0 // what the next 10 s would bring
	s.watch.mu.Unlock()
	rec := held("k", 1)
	for deadline := time.Now().Add(time.Minute); s.Properties().Fencing != store.FencingPerPrimary; time.Sleep(10 * time.Millisecond) {
		rec = storetest.MustPut(t, s, rec)
		if time.Now().After(deadline) {
			t.Fatalf("with a slot of a standby that is down: %+v", s.Properties())
		}
	}
}

// TestFinding_S5_APoolThatHearsNoWarningsSaysSo: success may then be a wait that was cancelled.
func TestFinding_S5_APoolThatHearsNoWarningsSaysSo(t *testing.T) {
	s := &Store{}
	s.watch.saw(replication{fsync: "on", commit: "on", synchronous: "*", followers: 1})
	if got := s.Properties().Fencing; got != store.FencingLinearizable {
		t.Errorf("a pool that hears warnings: fencing %q", got)
	}
	s.watch.deaf.Store(true)
	if got := s.Properties().Fencing; got != store.FencingPerPrimary {
		t.Errorf("a pool that hears none: fencing %q", got)
	}
}

// failovers is how many rounds TestFinding_S5_Failover has.
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

// TestFinding_S5_Failover: the standby disappears while one process renews a lease and claims another, the primary dies, the standby
// is promoted, and a second process wants both. There are never two holders, and no term that was announced is lost.
func TestFinding_S5_Failover(t *testing.T) {
	for range failovers(t) {
		failOver(t)
	}
}

// terms are the holds that two processes were told of.
type terms struct {
	mu  sync.Mutex
	all []*lease.Lease
}

func (h *terms) add(l *lease.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, l)
}

// holders returns how many leases of that name are valid now.
func (h *terms) holders(name string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.all {
		if l.Key() == name && l.Check() == nil {
			n++
		}
	}
	return n
}

// newest returns the highest token of that name that a process was told.
func (h *terms) newest(name string) (most fence.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.all {
		if l.Key() == name {
			most = max(most, l.Token())
		}
	}
	return most
}

func failOver(t *testing.T) {
	primary, standby, both, between := syncPair(t)
	table := newTable(t, primary.URL)
	open := func(owner string) *lease.Manager {
		m, err := lease.NewManager(mustOpen(t, both, Options{Table: table}), lease.Options{
			TTL: 3 * time.Second, Name: owner, Fencing: store.FencingLinearizable,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	a, told := open("a"), &terms{}
	kept, err := a.Acquire(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	told.add(kept)
	between.Cut()
	acquiring, stop := context.WithCancel(t.Context())
	var claims sync.WaitGroup
	defer claims.Wait()
	defer stop()
	claim := func(m *lease.Manager, name string) {
		claims.Go(func() {
			if l, err := m.Acquire(acquiring, name); err == nil {
				told.add(l)
			}
		})
	}
	claim(a, "claimed")
	// The renewals and the claim reach the primary, which shows them, and no standby.
	select {
	case <-kept.Context().Done():
	case <-time.After(10 * time.Second):
		t.Error("a lease is renewed, and no standby knows")
	}
	time.Sleep(3 * time.Second)
	if n := told.holders("kept") + told.holders("claimed"); n != 0 {
		t.Errorf("%d leases are held, of which no standby knows", n)
	}
	primary.Kill()
	promote(t, standby)
	b := open("b")
	for _, name := range []string{"kept", "claimed"} {
		claim(b, name)
		claim(a, name) // again, for the lease that was lost
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		there := true
		for _, name := range []string{"kept", "claimed"} {
			n := told.holders(name)
			if n > 1 {
				t.Fatalf("%s has %d holders", name, n)
			}
			there = there && n == 1
		}
		if there {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody holds them though the standby was promoted")
		}
	}
	rest := mustOpen(t, both, Options{Table: table})
	for _, name := range []string{"kept", "claimed"} {
		if rec := eventually(t, rest, name); rec.Token < told.newest(name) {
			t.Errorf("%s: token %d was acknowledged, and %d is left", name, told.newest(name), rec.Token)
		}
	}
}

// TestFinding_S15_AnErrorThatDoesNotKnowIsUnknown: the server says so itself.
func TestFinding_S15_AnErrorThatDoesNotKnowIsUnknown(t *testing.T) {
	for code, want := range map[string]bool{"40003": false, "08007": false, "40001": true, "23505": true} {
		if got := refused(&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: code}); got != want {
			t.Errorf("SQLSTATE %s: certainly not done: %v, want %v", code, got, want)
		}
	}
}
