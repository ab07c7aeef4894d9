package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// putting returns the write of a record that is there.
func putting(t testing.TB, s *Store, rec store.Record) *write {
	t.Helper()
	body, err := driver.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	kept := driver.Canonical(rec)
	kept.Version = newVersion()
	args := append(append([]any{rec.Key, kept.Version, string(body)}, s.topics.args(rec.Key)...), rec.Version)
	return &write{statement: s.sql.update, args: args, body: string(body), change: change{rec.Key, rec.Version, rec.Nonce, kept}}
}

// traced opens a store whose statements are counted.
func traced(t testing.TB, dsn string, opts Options) (*Store, *asked) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	seen := &asked{pool: make(chan struct{}, 10_000)}
	config.ShouldPing, config.MaxConns, config.ConnConfig.Tracer = ShouldPing, 4, seen
	HearWarnings(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := Open(t.Context(), pool, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, seen
}

// Of writes that are sent together each comes out as if it was sent alone. Those that are refused cost a statement more each.
func TestWritesTogether(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	s, seen := traced(t, srv.URL, Options{Table: newTable(t, srv.URL)})
	var group []*write
	for i := range 2*mostTogether + 5 {
		group = append(group, putting(t, s, storetest.MustPut(t, s, held(fmt.Sprint("k", i), 1))))
	}
	stale, gone := group[3], group[40]
	current := storetest.MustPut(t, s, store.Record{Key: stale.key, Version: stale.version, Nonce: "other"})
	if err := s.Delete(t.Context(), gone.key, gone.version); err != nil {
		t.Fatal(err)
	}
	seen.queries.Store(0)
	s.together(t.Context(), group)
	if n := seen.queries.Load(); n != 3+2 {
		t.Errorf("%d statements, want 3 and one for each that was refused", n)
	}
	for _, w := range group {
		refused := w == stale || w == gone
		if w.err != nil || w.done == refused {
			t.Errorf("%s: done %t, %v", w.key, w.done, w.err)
		}
		rec, err := s.Get(t.Context(), w.key)
		if !refused && (err != nil || rec.Version != w.kept.Version || rec.Nonce != w.nonce || rec.Owner != w.kept.Owner) {
			t.Errorf("%s is stored as %+v, %v", w.key, rec, err)
		}
	}
	if v := stale.row.version; v == nil || *v != current.Version {
		t.Errorf("the one that was changed meanwhile met %v, want %s", v, current.Version)
	}
	if gone.row.version != nil {
		t.Errorf("the one that was deleted meanwhile met %s", *gone.row.version)
	}
}

// Writes that are asked for at the same time share statements, and are there when they are acknowledged.
func TestWritesAtTheSameTime(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	opts := Options{Table: newTable(t, srv.URL)}
	s, seen := traced(t, srv.URL, opts)
	direct := mustOpen(t, srv.URL, opts)
	const writers, times = 40, 5
	var all sync.WaitGroup
	records := make([]store.Record, writers)
	for i := range records {
		records[i] = storetest.MustPut(t, s, held(fmt.Sprint("k", i), 1))
	}
	seen.queries.Store(0)
	for _, rec := range records {
		all.Go(func() {
			for range times {
				var err error
				if rec, err = s.Put(t.Context(), rec); err != nil {
					t.Error(err)
					return
				}
				if got, err := direct.Get(t.Context(), rec.Key); err != nil || got.Version != rec.Version {
					t.Errorf("%s is stored at %s, %v, want %s", rec.Key, got.Version, err, rec.Version)
				}
			}
		})
	}
	all.Wait()
	if n := seen.queries.Load(); n >= writers*times {
		t.Errorf("%d statements for %d writes", n, writers*times)
	}
}

// A record that somebody else has locked delays who wants it, and nobody who wants another one.
func TestALockedRecordDelaysNobodyElse(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s, watcher := mustOpen(t, srv.URL, Options{Table: table}), admin(t, srv.URL)
	var group []*write
	for _, key := range []string{"a", "locked", "y", "z"} {
		group = append(group, putting(t, s, storetest.MustPut(t, s, held(key, 1))))
	}
	tx := locked(t, srv.URL, table, "locked")
	var ended sync.WaitGroup
	ended.Go(func() { s.together(t.Context(), group) })
	untilBlocked(t, watcher, table)
	for _, w := range []*write{group[0], group[2], group[3]} {
		if rec, err := s.Get(t.Context(), w.key); err != nil || rec.Version != w.kept.Version {
			t.Errorf("%s is stored at %s, %v, want %s, while another record is locked", w.key, rec.Version, err, w.kept.Version)
		}
	}
	mustExec(t, tx, "UPDATE "+table+" SET version = 'winner' WHERE key = 'locked'")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended.Wait()
	if w := group[1]; w.err != nil || w.done {
		t.Errorf("the one that lost: done %t, %v", w.done, w.err)
	}
}

// committing has the server run that PL/pgSQL at the commit of each change of the record "bad": the rows of the statement have come by then.
func committing(t testing.TB, dsn, table, does string) {
	t.Helper()
	mustExec(t, admin(t, dsn), fmt.Sprintf(`CREATE FUNCTION %s_does() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN %s; RETURN NEW; END';
		CREATE CONSTRAINT TRIGGER does AFTER UPDATE ON %[1]s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.key = 'bad') EXECUTE FUNCTION %[1]s_does()`, table, does))
}

// What the server refuses of one write it refuses of none of the others.
func TestOneRefusedOfManyTogether(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s := mustOpen(t, srv.URL, Options{Table: table})
	var group []*write
	for _, key := range []string{"a", "bad", "y", "z"} {
		group = append(group, putting(t, s, storetest.MustPut(t, s, held(key, 1))))
	}
	committing(t, srv.URL, table, "RAISE EXCEPTION ''not this one''")
	s.together(t.Context(), group)
	for _, w := range group {
		rec, err := s.Get(t.Context(), w.key)
		if err != nil {
			t.Fatal(err)
		}
		if bad := w.key == "bad"; !w.done || (w.err != nil) != bad || bad && w.unknown || (rec.Version == w.kept.Version) == bad {
			t.Errorf("%s: done %t, unknown %t, %v, stored at %s of %s", w.key, w.done, w.unknown, w.err, rec.Version, w.kept.Version)
		}
	}
}

// When the connection of writes that were sent together breaks, the outcome of each is unknown, also to the store, and none is sent again.
func TestWritesTogetherThatWereStoppedAreUnknown(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s, conn := mustOpen(t, srv.URL, Options{Table: table}), admin(t, srv.URL)
	var group []*write
	for _, key := range []string{"a", "bad", "y", "z"} {
		group = append(group, putting(t, s, storetest.MustPut(t, s, held(key, 1))))
	}
	committing(t, srv.URL, table, "PERFORM pg_advisory_xact_lock(4711, 1)")
	mustExec(t, conn, "SELECT pg_advisory_lock(4711, 1)")
	var ended sync.WaitGroup
	ended.Go(func() { s.together(t.Context(), group) })
	mustExec(t, conn, "SELECT pg_terminate_backend($1)", untilBlocked(t, conn, table))
	ended.Wait()
	for _, w := range group {
		if rec, err := s.Get(t.Context(), w.key); !w.unknown || w.err == nil || w.done || err != nil || rec.Version != w.version {
			t.Errorf("%s: done %t, unknown %t, %v; stored at %s, %v", w.key, w.done, w.unknown, w.err, rec.Version, err)
		}
	}
}

// Who waits is told of what is written together, each of its own key: by one that waits for few, and by one that waits for many.
func TestWritesTogetherTellWhoWaits(t *testing.T) { stalltest.Run(t, writesTogetherTellWhoWaits) }

func writesTogetherTellWhoWaits(t testing.TB) {
	srv := servers.Postgres(t, servers.Shared())
	opts := Options{Table: newTable(t, srv.URL)}
	s := mustOpen(t, srv.URL, opts)
	var group []*write
	for i := range narrow + 8 {
		group = append(group, putting(t, s, storetest.MustPut(t, s, held(fmt.Sprint("k", i), 1))))
	}
	var all, told sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	wait := func(other *Store, w *write) {
		told.Add(1)
		all.Go(func() {
			defer told.Done()
			if rec, err := other.Wait(ctx, w.key, w.version); err != nil || rec.Version != w.kept.Version {
				t.Errorf("%s: told of %s, %v, want %s", w.key, rec.Version, err, w.kept.Version)
			}
		})
	}
	few, many := mustOpen(t, srv.URL, opts), mustOpen(t, srv.URL, opts)
	for i, w := range group {
		if wait(many, w); i < 3 {
			wait(few, w)
		}
	}
	conn := admin(t, srv.URL)
	for ready := 0; ready < narrow+4; time.Sleep(5 * time.Millisecond) { // locks of keys, and that of the crowd
		const listening = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND (classid::bigint = $1 AND mode = 'ShareLock' OR classid::bigint = $2 AND mode = 'ExclusiveLock')`
		if err := conn.QueryRow(ctx, listening, int64(uint32(s.topics.class)), int64(uint32(s.topics.crowd))).Scan(&ready); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	s.together(ctx, group)
	told.Wait()
	if took := time.Since(start); took > 4*time.Second { // those who aren't told read after 5 s
		t.Errorf("it took %v until all knew", took)
	}
	all.Wait()
	for _, w := range group {
		if w.err != nil || !w.done {
			t.Errorf("%s: done %t, %v", w.key, w.done, w.err)
		}
	}
	if t.Failed() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("some were never told")
	}
}
