package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// asked is told when a pool is asked for a connection, and counts what is asked on them.
type asked struct {
	pool    chan struct{}
	queries atomic.Int64
}

func (a *asked) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	a.pool <- struct{}{}
	return ctx
}

func (a *asked) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	a.queries.Add(1)
	return ctx
}

func (a *asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// onOne opens a store whose pool has one connection, through addr, and returns what counts the round trips on it.
func onOne(t testing.TB, dsn, addr, table string, configure func(*pgxpool.Config)) (*Store, *atomic.Int64) {
	t.Helper()
	pool, sent, _ := countedPool(t, at(t, dsn, addr), func(c *pgxpool.Config) {
		c.MaxConns = 1
		if configure != nil {
			configure(c)
		}
	})
	s, err := Open(t.Context(), pool, Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, sent
}

// A holder's look at the settings comes with a renewal: it costs no round trip, and no connection that the next renewal needs.
func TestFinding_L1_ALookComesWithARenewal(t *testing.T) {
	srv := servers.Postgres(t)
	s, sent := onOne(t, srv.URL, srv.Addr, newTable(t, srv.URL), nil)
	rec, err := s.Put(t.Context(), held("k", 1))
	for range 2 { // prepared
		if err == nil {
			rec, err = s.Put(t.Context(), rec)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, admin(t, srv.URL), "SELECT pg_create_physical_replication_slot('standby', true)")
	for _, asks := range []bool{false, true} { // lease.Options.Fencing has the properties asked for before each renewal
		s.watch.mu.Lock()
		s.watch.due = 0 // what the next 10 s would bring
		s.watch.mu.Unlock()
		sent.Store(0)
		if asks {
			s.Properties()
		}
		if rec, err = s.Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if got := s.watch.last(); got.slots != 1 {
			t.Errorf("after a renewal it has seen %+v, want the slot", got)
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("%d round trips, want 1", n)
		}
	}
}

// Where the network is slow, the first use of a statement takes one round trip, as the next ones do.
func TestFinding_L1_NothingIsPreparedOverASlowNetwork(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	proxy := servers.Proxy(t, srv.Addr)
	s, sent := onOne(t, srv.URL, proxy.Addr, newTable(t, srv.URL), nil)
	rec, err := s.Put(t.Context(), held("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	proxy.Delay(2 * near)
	for range 3 {
		sent.Store(0)
		if rec, err = s.Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("a renewal took %d round trips, want 1", n)
		}
	}
}

// A copy of a write that waits for a connection until another one was done is not sent: the next renewal needs that connection.
func TestFinding_L1_ALateCopyLeavesTheConnection(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	asks := &asked{pool: make(chan struct{}, 100)}
	s, _ := onOne(t, srv.URL, srv.Addr, table, func(c *pgxpool.Config) { c.ConnConfig.Tracer = asks })
	rec, err := s.Put(t.Context(), held("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	for len(asks.pool) > 0 {
		<-asks.pool
	}
	asks.queries.Store(0)
	lock := locked(t, srv.URL, table, "k")
	rec.Nonce = "renewal"
	outcomes := make(chan error, 2)
	watcher := admin(t, srv.URL)
	for range 2 {
		go func() {
			_, err := s.Put(t.Context(), rec)
			outcomes <- err
		}()
		<-asks.pool
		untilBlocked(t, watcher, table)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second := <-outcomes, <-outcomes
	conflict, refused := errors.AsType[*store.ConflictError](errors.Join(first, second))
	if !refused || conflict.Current.Nonce != "renewal" || first != nil && second != nil {
		t.Errorf("the copies came to %v and %v, want one done, and one refused", first, second)
	}
	if n := asks.queries.Load(); n != 1 {
		t.Errorf("%d were sent, want 1", n)
	}
}
