package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestAWriteIsDurableThoughTheSessionIsnt: synchronous_commit is off, and the log would be written ten seconds later.
func TestAWriteIsDurableThoughTheSessionIsnt(t *testing.T) {
	srv := servers.Postgres(t, servers.Set("synchronous_commit", "off"), servers.Set("wal_writer_delay", "10s"), servers.Set("autovacuum", "off"))
	table := newTable(t, srv.URL)
	mustExec(t, admin(t, srv.URL), "SET synchronous_commit = on; INSERT INTO "+table+" VALUES ('settled', 'v', '{\"v\":1,\"token\":0}', now())")
	for round := range 3 {
		s := mustOpen(t, srv.URL, Options{Table: table, NoNotify: round%2 == 1})
		created := storetest.MustPut(t, s, held("created", fence.Token(round+1)))
		updated := storetest.MustPut(t, s, storetest.MustPut(t, s, held("updated", 1)))
		gone := storetest.MustPut(t, s, held("gone", 1))
		if err := s.Delete(t.Context(), "gone", gone.Version); err != nil {
			t.Fatal(err)
		}
		if round == 2 { // what the last write left behind must not be synced by another one
			created = storetest.MustPut(t, s, created)
		}
		srv.Kill()
		srv.Restart()
		s = mustOpen(t, srv.URL, Options{Table: table})
		for _, want := range []store.Record{created, updated} {
			if got, err := s.Get(t.Context(), want.Key); err != nil || got.Version != want.Version {
				t.Fatalf("an acknowledged write of %s was lost: %+v, %v", want.Key, got, err)
			}
		}
		if _, err := s.Get(t.Context(), "gone"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("an acknowledged deletion was lost: %v", err)
		}
		for _, rec := range []store.Record{created, updated} {
			if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// pair is a primary and its standby.
func pair(t testing.TB) (primary, standby *servers.Server, both string) {
	t.Helper()
	primary = servers.Postgres(t)
	standby = servers.Postgres(t, servers.ReplicaOf(primary))
	replicates(t, admin(t, primary.URL), "state", "streaming")
	u, err := url.Parse(primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + standby.Addr
	q := u.Query()
	q.Set("target_session_attrs", "read-write")
	u.RawQuery = q.Encode()
	return primary, standby, u.String()
}

// replicates waits until the primary says that of its standby. That answers reads before it asks for what the primary writes.
func replicates(t testing.TB, primary *pgx.Conn, column, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var is string
		err := primary.QueryRow(t.Context(), "SELECT "+column+" FROM pg_stat_replication WHERE application_name = 'walreceiver'").Scan(&is)
		if err == nil && is == want {
			return
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) || time.Now().After(deadline) {
			t.Fatalf("the standby's %s is %q, want %q: %v", column, is, want, err)
		}
	}
}

// follow waits until the standby has all that the primary wrote.
func follow(t testing.TB, primary, standby *servers.Server) {
	t.Helper()
	p, s := admin(t, primary.URL), admin(t, standby.URL)
	var lsn string
	if err := p.QueryRow(t.Context(), "SELECT pg_current_wal_flush_lsn()::text").Scan(&lsn); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var there bool
		if err := s.QueryRow(t.Context(), "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn).Scan(&there); err != nil {
			t.Fatal(err)
		}
		if there {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the standby doesn't follow")
		}
	}
}

func promote(t testing.TB, standby *servers.Server) {
	t.Helper()
	mustExec(t, admin(t, standby.URL), "SELECT pg_promote()")
}

// TestFailover: the primary dies, its synchronous standby takes over, and the handle goes on with all that was acknowledged.
// A Wait that was under way hears of what is written there.
func TestFailover(t *testing.T) {
	primary, standby, both := pair(t)
	table := newTable(t, primary.URL)
	if s := mustOpen(t, both, Options{Table: table}); s.Properties().Fencing != store.FencingPerPrimary {
		t.Errorf("with an asynchronous standby: %+v", s.Properties())
	}
	conn := admin(t, primary.URL)
	mustExec(t, conn, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	mustExec(t, conn, "SELECT pg_reload_conf()")
	replicates(t, conn, "sync_state", "sync")
	mustExec(t, conn, "CHECKPOINT") // by the process that has commits wait, which hears of the setting by itself
	s := mustOpen(t, both, Options{Table: table})
	if s.Properties().Fencing != store.FencingLinearizable {
		t.Errorf("with a synchronous standby: %+v", s.Properties())
	}
	rec := storetest.MustPut(t, s, held("k", 1))
	waited := storetest.MustPut(t, s, held("waited", 1))
	type result struct {
		rec store.Record
		err error
	}
	waiting := make(chan result, 1)
	go func() {
		for { // an outage may end it
			rec, err := s.Wait(t.Context(), "waited", waited.Version)
			if err == nil || t.Context().Err() != nil {
				waiting <- result{rec, err}
				return
			}
		}
	}()
	// Writes go on until the primary is gone.
	var acknowledged atomic.Uint64
	stopped := make(chan error, 1)
	go func() {
		for {
			rec.Token++
			written, err := s.Put(t.Context(), rec)
			if err != nil {
				stopped <- err
				return
			}
			rec = written
			acknowledged.Store(uint64(rec.Token))
		}
	}()
	for acknowledged.Load() < 50 && len(stopped) == 0 {
		time.Sleep(time.Millisecond)
	}
	primary.Kill()
	t.Log("the last write:", <-stopped)
	promote(t, standby)
	got := eventually(t, s, "k")
	if uint64(got.Token) < acknowledged.Load() {
		t.Errorf("token %d was acknowledged, and %d is left", acknowledged.Load(), got.Token)
	}
	if _, err := s.Put(t.Context(), got); err != nil {
		t.Errorf("a write to the new primary: %v", err)
	}
	written := storetest.MustPut(t, s, waited)
	if r := <-waiting; r.err != nil || r.rec.Version != written.Version {
		t.Errorf("the Wait returned %+v, %v", r.rec, r.err)
	}
}

// eventually reads until that succeeds.
func eventually(t testing.TB, s store.Store, key string) store.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		rec, err := s.Get(ctx, key)
		if err == nil {
			return rec
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestRoleFlip: connections that stay open lead to a server that was the primary and is one no more.
func TestRoleFlip(t *testing.T) {
	primary, standby, both := pair(t)
	table := newTable(t, primary.URL)
	s := mustOpen(t, both, Options{Table: table})
	rec := storetest.MustPut(t, s, held("k", 1))
	together(t, 4, func() { storetest.MustPut(t, s, held(newVersion(), 1)) }) // several connections
	follow(t, primary, standby)
	conn := admin(t, primary.URL)
	mustExec(t, conn, "ALTER SYSTEM SET default_transaction_read_only = on")
	mustExec(t, conn, "SELECT pg_reload_conf()")
	untilReadOnly(t, s.pool)
	promote(t, standby)
	// The first operation after the flip already finds the new primary, whatever it is.
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Fatalf("%+v, %v", got, err)
	}
	together(t, 4, func() { storetest.MustPut(t, s, held(newVersion(), 1)) })
	written := storetest.MustPut(t, s, rec)
	fresh := mustOpen(t, standby.URL, Options{Table: table})
	if got, err := fresh.Get(t.Context(), "k"); err != nil || got.Version != written.Version {
		t.Errorf("on the new primary: %+v, %v", got, err)
	}
	for rec, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Error(rec, err)
		}
	}
}

func together(t testing.TB, n int, f func()) {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(f)
	}
	group.Wait()
}

// untilReadOnly waits until every connection of the pool has heard of the change.
func untilReadOnly(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	idle := pool.AcquireAllIdle(t.Context())
	defer func() {
		for _, c := range idle {
			c.Release()
		}
	}()
	if len(idle) == 0 {
		t.Fatal("no connections")
	}
	for _, c := range idle {
		for deadline := time.Now().Add(time.Minute); ; {
			var on string
			if err := c.QueryRow(t.Context(), "SHOW transaction_read_only").Scan(&on); err != nil || time.Now().After(deadline) {
				t.Fatal(on, err)
			}
			if on == "on" {
				break
			}
		}
	}
}

// TestAStandbyIsNotRead: a handle whose new connections lead to a standby refuses to show what may be stale.
func TestAStandbyIsNotRead(t *testing.T) {
	primary, standby, _ := pair(t)
	table := newTable(t, primary.URL)
	if _, err := openOwner(t.Context(), standby.URL, Options{}); err == nil || !strings.Contains(err.Error(), "standby") || !strings.Contains(err.Error(), "target_session_attrs=read-write") {
		t.Errorf("opened on a standby: %v", err)
	}
	var addr atomic.Value
	addr.Store(primary.Addr)
	config, err := pgxpool.ParseConfig(primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ShouldPing = ShouldPing
	config.ConnConfig.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := Open(t.Context(), pool, Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := storetest.MustPut(t, s, held("k", 1))
	follow(t, primary, standby)
	addr.Store(standby.Addr)
	pool.Reset()
	_, getErr := s.Get(t.Context(), "k")
	_, missErr := s.Get(t.Context(), "missing")
	_, putErr := s.Put(t.Context(), rec)
	_, createErr := s.Put(t.Context(), held("new", 1))
	_, waitErr := s.Wait(t.Context(), "k", "")
	var listErr error
	for _, err := range s.List(t.Context(), "none/") {
		listErr = err
	}
	for what, err := range map[string]error{
		"Get": getErr, "Get of a missing key": missErr, "Put": putErr, "create": createErr, "Wait": waitErr, "List": listErr,
		"Delete": s.Delete(t.Context(), "k", rec.Version),
	} {
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), adviceReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	addr.Store(primary.Addr)
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("back on the primary: %+v, %v", got, err)
	}
}
