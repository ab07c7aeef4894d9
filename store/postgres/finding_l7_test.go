package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// soon is less than the timer takes, which finds what nobody told of after 5 s at the earliest.
const soon = 4 * time.Second

// crowd returns n keys.
func crowd(name string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint(name, i))
	}
	return keys
}

// awaitAll has the store wait for each of the keys, which aren't there, and returns when a writer would tell it of all. What comes of a Wait
// is sent on the channel.
func awaitAll(t testing.TB, pool *pgxpool.Pool, s *Store, keys []string) <-chan store.Record {
	t.Helper()
	var before int64
	locks := "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid::bigint = $1"
	class, crowds := int64(uint32(s.topics.class)), int64(uint32(s.topics.crowd))
	if err := pool.QueryRow(t.Context(), locks, class).Scan(&before); err != nil {
		t.Fatal(err)
	}
	came := make(chan store.Record, len(keys))
	for _, key := range keys {
		go func() {
			if rec, err := s.Wait(t.Context(), key, ""); err == nil {
				came <- rec
			}
		}()
	}
	until(t, pool, "SELECT ("+locks+") = $2", class, before+int64(min(len(keys), narrow)))
	if len(keys) > narrow {
		until(t, pool, "SELECT ("+locks+") = 1", crowds)
		for !s.crowded.Load() { // then it listens
			time.Sleep(time.Millisecond)
		}
	}
	return came
}

// named returns dsn for connections that the server knows by a name of their own.
func named(dsn string) string { return dsn + "&application_name=" + newVersion() }

// application returns that name.
func application(s *Store) string {
	return s.pool.Config().ConnConfig.RuntimeParams["application_name"]
}

// until waits until that is so.
func until(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var is bool
		if err := pool.QueryRow(t.Context(), sql, args...).Scan(&is); err != nil {
			t.Fatal(err)
		}
		if is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it never was: ", sql, args)
		}
	}
}

// next checks that this key comes, and soon.
func next(t testing.TB, came <-chan store.Record, key string) {
	t.Helper()
	select {
	case rec := <-came:
		if rec.Key != key {
			t.Errorf("%s came, want %s", rec.Key, key)
		}
	case <-time.After(soon):
		t.Errorf("%s didn't come within %v", key, soon)
	}
}

// TestFinding_L7_AWriteTellsWhomThereIsToTell: a write of a key that nobody waits for notifies nobody, and what the server sends to who waits
// doesn't grow with what others write.
func TestFinding_L7_AWriteTellsWhomThereIsToTell(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	pool, _, received := countedPool(t, srv.URL, nil)
	waiter, err := Open(t.Context(), pool, Options{Table: newTable(t, srv.URL)})
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close()
	came := awaitAll(t, newPool(t, srv.URL), waiter, crowd("awaited", 10))
	// Somebody else waits for keys of the writer's, too.
	other := mustOpen(t, srv.URL, waiter.opts)
	others := awaitAll(t, newPool(t, srv.URL), other, crowd("another's", 10))
	writer := mustOpen(t, srv.URL, waiter.opts)
	listener := listening(t, srv.URL, waiter.topics.channel, waiter.topics.crowded())
	before := received.Load()
	const writes = 300
	for i := range writes {
		rec := storetest.MustPut(t, writer, held(fmt.Sprint("foreign", i), 1))
		storetest.MustPut(t, writer, rec)
	}
	rec := storetest.MustPut(t, writer, held("another's0", 1))
	next(t, others, "another's0")
	for range writes {
		rec = storetest.MustPut(t, writer, rec)
	}
	storetest.MustPut(t, writer, held("awaited3", 1)) // what was told before has come when this has
	next(t, came, "awaited3")
	// A notification is some 80 bytes. What the timer reads, and this one notification and its record, are a few hundred.
	if n := received.Load() - before; n > 3*writes*10 {
		t.Errorf("%d bytes came for %d writes of keys that this one doesn't wait for", n, 3*writes)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if n, err := listener.WaitForNotification(ctx); err == nil {
		t.Errorf("all were told of %q on %s", n.Payload, n.Channel)
	}
}

// listening returns a connection that listens to the channels.
func listening(t testing.TB, dsn string, channels ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	for _, c := range channels {
		if _, err := conn.Exec(t.Context(), "LISTEN "+c); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// TestFinding_L7_AWriteThatIsUnderWay: who begins to wait while a write hasn't committed hears of it.
func TestFinding_L7_AWriteThatIsUnderWay(t *testing.T) { stalltest.Run(t, aWriteThatIsUnderWay) }

func aWriteThatIsUnderWay(t testing.TB) {
	srv := servers.Postgres(t, servers.Shared())
	pool := newPool(t, srv.URL)
	s := mustOpen(t, named(srv.URL), Options{Table: newTable(t, srv.URL)})
	for range 3 {
		rec := storetest.MustPut(t, s, held(newVersion(), 1))
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		args := append([]any{rec.Key, newVersion(), "{}"}, s.topics.args(rec.Key)...)
		if _, err := tx.Exec(t.Context(), s.sql.update.plain, append(args, rec.Version)...); err != nil {
			t.Fatal(err)
		}
		came := make(chan error, 1)
		go func() { _, err := s.Wait(t.Context(), rec.Key, rec.Version); came <- err }()
		until(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = $1 AND query = $2 AND state = 'idle'", application(s), lockSQL) // it tried
		committed := time.Now()
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-came; !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%v, want that {} is no record", err)
		}
		if took := time.Since(committed); took > soon {
			t.Errorf("it took %v after the commit", took)
		}
	}
}

// TestFinding_L7_ASpareConnection: a process that only waits needed a second connection once, in a stall say. What it reads from then on
// keeps that one from being closed if it goes over it.
func TestFinding_L7_ASpareConnection(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	config, err := pgxpool.ParseConfig(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ShouldPing, config.MaxConnIdleTime, config.HealthCheckPeriod = ShouldPing, time.Second, 100*time.Millisecond
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := Open(t.Context(), pool, Options{Table: newTable(t, srv.URL)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	awaitAll(t, newPool(t, srv.URL), s, []string{"k"})
	spare, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spare.Release()
	for deadline := time.Now().Add(time.Minute); pool.Stat().TotalConns() > 0; time.Sleep(50 * time.Millisecond) {
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are left beside the one that listens", pool.Stat().TotalConns())
		}
	}
}

// noIdle leaves the store's pool no connection: the store has the one that listens, or makes another.
func noIdle(t testing.TB, s *Store) {
	t.Helper()
	for _, conn := range s.pool.AcquireAllIdle(t.Context()) {
		hijacked := conn.Hijack()
		t.Cleanup(func() { hijacked.Close(context.Background()) })
	}
}

// TestFinding_L7_AnOwnWrite: what a process writes on the connection that listens wakes its own Waits.
func TestFinding_L7_AnOwnWrite(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	pool := newPool(t, srv.URL)
	one := mustOpen(t, srv.URL, Options{Table: newTable(t, srv.URL)})
	came := awaitAll(t, pool, one, []string{"a", "b", "c"})
	for _, key := range []string{"a", "b", "c"} {
		noIdle(t, one)
		storetest.MustPut(t, one, held(key, 1))
		next(t, came, key)
	}
}

// TestFinding_L7_OlderProcesses: they notify the table's channel of every key, and listen to nothing else.
func TestFinding_L7_OlderProcesses(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	pool := newPool(t, srv.URL)
	s := mustOpen(t, srv.URL, Options{Table: newTable(t, srv.URL)})
	came := awaitAll(t, pool, s, []string{"k", "other"})
	silent := mustOpen(t, srv.URL, Options{Table: s.opts.Table, NoNotify: true})
	storetest.MustPut(t, silent, held("k", 1))
	if _, err := pool.Exec(t.Context(), "SELECT pg_notify($1, 'k')", s.topics.channel); err != nil {
		t.Fatal(err)
	}
	next(t, came, "k")
}

// TestFinding_L7_Crowds: processes that wait for more keys than they have locks for hear of all, and one more hears when another one ends.
func TestFinding_L7_Crowds(t *testing.T) { stalltest.Run(t, crowds) }

func crowds(t testing.TB) {
	srv := servers.Postgres(t, servers.Shared())
	pool := newPool(t, srv.URL)
	first, err := openOwner(t.Context(), named(srv.URL), Options{Table: newTable(t, srv.URL)})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	opts := first.(owner).opts
	second, writer := mustOpen(t, named(srv.URL), opts), mustOpen(t, srv.URL, opts)
	keys := crowd("k", 3*narrow)
	one := awaitAll(t, pool, first.(owner).Store, keys)
	two := awaitAll(t, pool, second, keys[narrow/2:])
	write := func(key string, to ...<-chan store.Record) {
		storetest.MustPut(t, writer, held(key, 1))
		for _, came := range to {
			next(t, came, key)
		}
	}
	for _, key := range slices.Backward(keys[3*narrow-10:]) {
		write(key, one, two)
	}
	// What one of them writes, the other hears, even of the one with the lock, when its pool has no other connection.
	noIdle(t, first.(owner).Store)
	storetest.MustPut(t, first, held("k60", 1))
	next(t, one, "k60")
	next(t, two, "k60")
	listening, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Release()
	if _, err := listening.Exec(t.Context(), "LISTEN "+second.topics.crowded()); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = second.Wait(t.Context(), "more", "") }() // at which it looks at the crowd's lock
	until(t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1 AND query LIKE '%pg_advisory_lock($1::int, 0)%'
		AND query_start > clock_timestamp() - interval '500 ms')`, application(second))
	closed := time.Now() // its timer is 4.5 s away
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	noticed, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for { // of a key, or of none: the lock is free
		n, err := listening.Conn().WaitForNotification(noticed)
		if err != nil {
			t.Fatalf("nobody told that the crowd's lock is free: %v", err)
		}
		if n.Payload == "" {
			break
		}
	}
	until(t, pool, `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND classid::bigint = $1)`, int64(uint32(second.topics.crowd)))
	if took := time.Since(closed); took > soon {
		t.Errorf("the next one has the crowd's lock after %v", took)
	}
	for _, key := range keys[narrow : narrow+20] {
		write(key, two)
	}
}
