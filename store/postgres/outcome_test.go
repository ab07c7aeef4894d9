package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// admin returns a connection as the superuser.
func admin(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func mustExec(t testing.TB, conn interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, sql string, args ...any,
) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// locked locks the row of a key in a transaction, and returns that.
func locked(t testing.TB, dsn, table, key string) pgx.Tx {
	t.Helper()
	tx, err := admin(t, dsn).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	mustExec(t, tx, "SELECT FROM "+table+" WHERE key = $1 FOR UPDATE", key)
	return tx
}

// untilBlocked waits until a session waits for a lock, and returns its process.
func untilBlocked(t testing.TB, conn *pgx.Conn, table string) (pid int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := conn.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()`, table).Scan(&pid)
		if err == nil {
			return pid
		}
		if !errors.Is(err, pgx.ErrNoRows) || time.Now().After(deadline) {
			t.Fatal("nobody waits for the lock: ", err)
		}
	}
}

// TestALostRaceShowsTheWinner: a write that waits for another one sees the table as it was before that, and would report a
// conflict with the version that it knew.
func TestALostRaceShowsTheWinner(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s := mustOpen(t, srv.URL, Options{Table: table})
	watcher := admin(t, srv.URL)
	const winner = "ABCDEFGHIJ"
	replace := "UPDATE " + table + " SET version = '" + winner + "', record = '{\"v\":1,\"token\":0,\"nonce\":\"winner\"}' WHERE key = $1"
	remove := "DELETE FROM " + table + " WHERE key = $1"
	insert := "INSERT INTO " + table + " VALUES ($1, '" + winner + "', '{\"v\":1,\"token\":0,\"nonce\":\"winner\"}', now())"
	put := func(rec store.Record) error { _, err := s.Put(t.Context(), rec); return err }
	del := func(rec store.Record) error { return s.Delete(t.Context(), rec.Key, rec.Version) }
	for name, c := range map[string]struct {
		winner string
		loser  func(store.Record) error
		want   error
	}{
		"PutAfterPut":       {replace, put, store.ErrConflict},
		"DeleteAfterPut":    {replace, del, store.ErrConflict},
		"PutAfterDelete":    {remove, put, store.ErrNotFound},
		"DeleteAfterDelete": {remove, del, store.ErrNotFound},
		"CreateAfterCreate": {insert, put, store.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			rec := held(name, 1)
			if c.winner != insert {
				rec = storetest.MustPut(t, s, rec)
			}
			tx := locked(t, srv.URL, table, name)
			mustExec(t, tx, c.winner, name)
			ended := make(chan error, 1)
			go func() { ended <- c.loser(rec) }()
			untilBlocked(t, watcher, table)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := <-ended
			if !errors.Is(err, c.want) || errors.Is(err, store.ErrUnknownOutcome) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			var conflict *store.ConflictError
			if errors.As(err, &conflict) && (conflict.Current.Version != winner || conflict.Current.Nonce != "winner") {
				t.Errorf("the conflict shows %+v", conflict.Current)
			}
		})
	}
	t.Run("CreateAfterCreateThatWasTakenBack", func(t *testing.T) {
		tx := locked(t, srv.URL, table, "back")
		mustExec(t, tx, insert, "back")
		ended := make(chan error, 1)
		go func() { ended <- put(held("back", 1)) }()
		untilBlocked(t, watcher, table)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAStatementThatWasStoppedIsUnknown: whoever lost the server halfway can't tell.
func TestAStatementThatWasStoppedIsUnknown(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s := mustOpen(t, srv.URL, Options{Table: table})
	conn := admin(t, srv.URL)
	for _, c := range []struct {
		stop    string
		unknown bool
	}{
		{"SELECT pg_terminate_backend($1)", true}, // FATAL: the same comes from one that was terminated after its commit
		{"SELECT pg_cancel_backend($1)", false},   // ERROR: rolled back
	} {
		rec := storetest.MustPut(t, s, held(c.stop, 1))
		tx := locked(t, srv.URL, table, rec.Key)
		ended := make(chan error, 1)
		go func() { _, err := s.Put(t.Context(), rec); ended <- err }()
		mustExec(t, conn, c.stop, untilBlocked(t, conn, table))
		if err := <-ended; err == nil || errors.Is(err, store.ErrUnknownOutcome) != c.unknown {
			t.Errorf("%s: %v, want unknown: %v", c.stop, err, c.unknown)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), rec.Key); err != nil || got.Version != rec.Version {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// TestStricterIsolation: sessions whose transactions are serializable fail where others would wait and look again.
func TestStricterIsolation(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	for level, escaped := range map[string]string{"serializable": "serializable", "repeatable read": "repeatable%5C%20read"} {
		s := mustOpen(t, srv.URL+"&options=-c%20default_transaction_isolation%3D"+escaped, Options{Table: table})
		storetest.MustPut(t, s, held(level, 1))
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				for n := 0; n < 20; {
					rec, err := s.Get(t.Context(), level)
					if err == nil {
						rec.Token++
						_, err = s.Put(t.Context(), rec)
					}
					switch {
					case err == nil:
						n++
					case !errors.Is(err, store.ErrConflict):
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		if rec, err := s.Get(t.Context(), level); err != nil || rec.Token != 121 {
			t.Errorf("%s: token %v, %v: want 121", level, rec.Token, err)
		}
	}
}

// TestAPolicyThatHidesWrites: the server says that it did nothing, and shows the row that it should have changed.
func TestAPolicyThatHidesWrites(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s := mustOpen(t, srv.URL, Options{Table: table})
	rec := storetest.MustPut(t, s, held("k", 1))
	mustExec(t, admin(t, srv.URL), fmt.Sprintf("CREATE RULE nothing AS ON DELETE TO %s DO INSTEAD NOTHING", table))
	mustExec(t, admin(t, srv.URL), fmt.Sprintf(`CREATE FUNCTION %s_ignore() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER ignore BEFORE UPDATE ON %[1]s FOR EACH ROW EXECUTE FUNCTION %[1]s_ignore()`, table))
	if _, err := s.Put(t.Context(), rec); err == nil || errors.Is(err, store.ErrConflict) || !errors.Is(err, errIgnored) {
		t.Errorf("Put: %v", err)
	}
	if err := s.Delete(t.Context(), "k", rec.Version); err == nil || errors.Is(err, store.ErrConflict) {
		t.Errorf("Delete: %v", err)
	}
}

// TestRowsOfOthersAreLeftAlone: what can't be read is an error that names the key, and stays as it is.
func TestRowsOfOthersAreLeftAlone(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	table := newTable(t, srv.URL)
	s := mustOpen(t, srv.URL, Options{Table: table, ClockStep: time.Millisecond})
	conn := admin(t, srv.URL)
	good := storetest.MustPut(t, s, held("good", 1))
	for key, row := range map[string]string{
		"not-a-record": `'v1', '[1, 2]', now()`,
		"newer":        `'v1', '{"v":99}', now()`,
		"tab\there":    `'v1', '{"v":1,"token":0}', now()`,
		"nul":          `'v1', '{"v":1,"token":0,"owner":"\u0000"}', now()`,
	} {
		mustExec(t, conn, "INSERT INTO "+table+" VALUES ($1, "+row+")", key)
	}
	for key, at := range map[string]string{"ages-ago": "-infinity", "never": "infinity", "tomorrow": "tomorrow", "bc": "4713-01-01 BC"} {
		mustExec(t, conn, "INSERT INTO "+table+` VALUES ($1, 'v1', '{"v":1,"token":0}', $2::text::timestamptz)`, key, at)
	}
	corrupt, fine := 0, 0
	for rec, err := range s.List(t.Context(), "") {
		switch {
		case err == nil:
			fine++
			if rec.Age < 0 {
				t.Errorf("%s: Age %v", rec.Key, rec.Age)
			}
		case errors.Is(err, store.ErrCorrupt):
			corrupt++
		default:
			t.Error(err)
		}
	}
	if corrupt != 4 || fine != 5 {
		t.Errorf("%d rows can't be read and %d can, want 4 and 5", corrupt, fine)
	}
	for _, key := range []string{"not-a-record", "newer", "nul"} {
		_, getErr := s.Get(t.Context(), key)
		_, putErr := s.Put(t.Context(), held(key, 1))
		_, waitErr := s.Wait(t.Context(), key, "")
		for what, err := range map[string]error{"Get": getErr, "Put": putErr, "Wait": waitErr, "Delete": s.Delete(t.Context(), key, good.Version)} {
			if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("%s of %s: %v", what, key, err)
			}
		}
	}
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table+" WHERE version = 'v1'").Scan(&n); err != nil || n != 8 {
		t.Errorf("%d rows of others are left, %v: want 8", n, err)
	}
}
