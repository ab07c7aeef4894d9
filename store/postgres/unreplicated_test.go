package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold/internal/proof/servers"
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

// TestFinding_S5_Failovers: the standby disappears, the deadline of a write passes, and the primary shows the record though no standby
// has it. Then the primary dies, and the standby is promoted.
func TestFinding_S5_Failovers(t *testing.T) {
	storetest.RunFailovers(t, func(t testing.TB) storetest.Instance {
		primary, standby, both, between := syncPair(t)
		table := newTable(t, primary.URL)
		return storetest.Instance{
			Open: func(ctx context.Context) (store.Store, error) {
				s, err := openOwner(ctx, both, Options{Table: table})
				if err == nil && store.Describe(s).Fencing != store.FencingLinearizable {
					return nil, errors.Join(fmt.Errorf("with a synchronous standby: %+v", store.Describe(s)), s.Close())
				}
				return s, err
			},
			Detach:   func() error { between.Cut(); return nil },
			Attach:   func() error { between.Heal(); return nil },
			FailOver: func() error { primary.Kill(); promote(t, standby); return nil },
		}
	})
}

// TestFinding_S5_AWaitThatTheServerCancelsIsUnknown: the server gives up to wait for the standby, and reports success.
func TestFinding_S5_AWaitThatTheServerCancelsIsUnknown(t *testing.T) {
	primary, _, both, between := syncPair(t)
	table := newTable(t, primary.URL)
	s := mustOpen(t, both, Options{Table: table})
	change := storetest.MustPut(t, s, held("k", 1))
	between.Cut()
	outcome := make(chan error, 1)
	go func() {
		change.Nonce = "cancelled"
		_, err := s.Put(t.Context(), change)
		outcome <- err
	}()
	untilCancelled(t, admin(t, primary.URL), table)
	if err := <-outcome; !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, errUnreplicated) {
		t.Errorf("a write whose wait for the standby was cancelled: %v", err)
	}
	between.Heal()
	if got := eventually(t, s, "k"); got.Nonce != "cancelled" {
		t.Errorf("with the standby back: %+v", got)
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

// TestFinding_S8_WhatTheFencingDependsOnIsLookedAtAgain: an asynchronous standby comes after Open. Who demands better holds nothing more,
// until it has gone.
func TestFinding_S8_WhatTheFencingDependsOnIsLookedAtAgain(t *testing.T) {
	primary := servers.Postgres(t)
	table := newTable(t, primary.URL)
	s := mustOpen(t, primary.URL, Options{Table: table})
	if got := s.Properties().Fencing; got != store.FencingLinearizable {
		t.Fatalf("alone: fencing %q", got)
	}
	m, err := lease.NewManager(s, lease.Options{TTL: 3 * time.Second, Fencing: store.FencingLinearizable})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	l, err := m.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	conn := admin(t, primary.URL)
	become := func(want store.Fencing) {
		s.watch.mu.Lock()
		s.watch.due = 0 // what the next 10 s would bring
		s.watch.mu.Unlock()
		storetest.Eventually(t, func() error {
			if p := s.Properties(); p.Fencing != want {
				return fmt.Errorf("want fencing %q: %+v", want, p)
			}
			return nil
		})
	}
	mustExec(t, conn, "SELECT pg_create_physical_replication_slot('standby', true)")
	become(store.FencingPerPrimary)
	select {
	case <-l.Context().Done():
	case <-time.After(time.Minute):
		t.Error("a lease is renewed that demands linearizable fencing")
	}
	if _, err := m.TryAcquire(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "per primary") {
		t.Errorf("a name is taken: %v", err)
	}
	mustExec(t, conn, "SELECT pg_drop_replication_slot('standby')")
	become(store.FencingLinearizable)
	if _, err := m.Acquire(t.Context(), "k"); err != nil {
		t.Error(err)
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

// TestFinding_S15_AnErrorThatDoesNotKnowIsUnknown: the server says so itself.
func TestFinding_S15_AnErrorThatDoesNotKnowIsUnknown(t *testing.T) {
	for code, want := range map[string]bool{"40003": false, "08007": false, "40001": true, "23505": true} {
		if got := refused(&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: code}); got != want {
			t.Errorf("SQLSTATE %s: certainly not done: %v, want %v", code, got, want)
		}
	}
}
