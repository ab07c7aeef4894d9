package file

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// A write that is asked for after the end of its context, or that is no record, is not done, and no success.
func TestWriteThatIsNotBegun(t *testing.T) {
	s := testOpen(t, testPath(t))
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if _, err := s.Put(ctx, held("k", 1)); !errors.Is(err, errEnough) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("after the end of the context: %v", err)
	}
	if _, err := s.Put(t.Context(), store.Record{Key: "k", Owner: "o"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("of what is no record: %v", err)
	}
	if rec, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%+v, %v", rec, err)
	}
	if err := s.Delete(ctx, "k", "v"); !errors.Is(err, errEnough) {
		t.Errorf("a deletion: %v", err)
	}
}

// A transaction whose COMMIT fails may count after a crash, unless SQLite never wrote its last frame; what wrote nothing is not done.
func TestCommitThatFails(t *testing.T) {
	s := testOpen(t, testPath(t))
	rec := mustPut(t, s, held("there", 1))
	s.turn.Lock()
	for _, statement := range []string{ // a constraint that is looked at by COMMIT
		"PRAGMA foreign_keys = ON",
		"CREATE TEMP TABLE parents (id INTEGER PRIMARY KEY)",
		"CREATE TEMP TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)",
		"CREATE TEMP TRIGGER orphans AFTER INSERT ON main.records BEGIN INSERT INTO children VALUES (7); END",
	} {
		if _, err := s.writer.exec(statement); err != nil {
			t.Error(err)
		}
	}
	s.turn.Unlock()
	for what, c := range map[string]struct {
		r       *request
		unknown bool
	}{
		"what was written": {&request{key: "new", next: "v", mark: "|", body: "{}"}, true},
		"what was not":     {&request{key: rec.Key, version: "other", next: "v", mark: "|", body: "{}"}, false},
	} {
		s.turn.Lock()
		err := s.write([]*request{c.r, {key: "beside", next: "v", mark: "|", body: "{}"}})(c.r)
		s.turn.Unlock()
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) != c.unknown {
			t.Errorf("%s, and COMMIT failed: %v", what, err)
		}
	}
	rec.Version = "other"
	if _, err := s.Put(t.Context(), rec); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a write that meets another version, after that: %v", err)
	}
}

// Without a connection nothing is written, and nothing is done. The next write makes one.
func TestConnectionThatCanNotBeMade(t *testing.T) {
	s := testOpen(t, testPath(t))
	r := &request{key: "k", next: "v", mark: "|", body: "{}"}
	s.turn.Lock()
	path := s.path
	if err := s.writer.close(); err != nil {
		t.Error(err)
	}
	s.writer, s.path = nil, path+".missing"
	if err := s.write([]*request{r})(r); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("without a connection: %v, want that it is not done", err)
	}
	s.path = path
	s.turn.Unlock()
	mustPut(t, s, held("k", 1))
}

// A write of what was deleted says so, and one that is over waits for nobody.
func TestWriteOfWhatIsGone(t *testing.T) {
	s := testOpen(t, testPath(t))
	rec := mustPut(t, s, held("k", 1))
	if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Put(t.Context(), rec); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%+v, %v", got, err)
	}
	if since := s.waitsSince(); since != 0 {
		t.Errorf("something waits for another process since %v", since)
	}
}

// Errors stay errors, also those that nothing is known of.
func TestErrorsThatNothingIsKnownOf(t *testing.T) {
	unheardOf := errors.New("unheard of")
	if err := explain("store.db", unheardOf); !errors.Is(err, unheardOf) {
		t.Errorf("explained as %v", err)
	}
	l, err := openLock(testPath(t) + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if err := l.lockWithin(t.Context()); err == nil {
		t.Error("a lock file that is closed is locked")
	}
}

// A pause that is ended says that it didn't end by itself.
func TestPauseThatIsEnded(t *testing.T) {
	stop := make(chan struct{})
	if !sleepUntil(clock.System(), time.Microsecond, stop) {
		t.Error("it was not ended")
	}
	close(stop)
	if sleepUntil(clock.System(), time.Hour, stop) {
		t.Error("it was ended")
	}
}

// Where the kernel vouches for a process, the proof of its life can be handed on.
func TestProof(t *testing.T) {
	s := testOpen(t, testPath(t))
	if files := s.Proof(); (len(files) > 0) != (s.life != nil) {
		t.Errorf("%d files, with a life: %v", len(files), s.life != nil)
	}
}

// A statement that fails ends its transaction: the write is not done, and nothing is said of what is stored.
func TestStatementOfAWriteThatFails(t *testing.T) {
	s := testOpen(t, testPath(t))
	rec := mustPut(t, s, held("there", 1))
	s.turn.Lock()
	if _, err := s.writer.exec("CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.records BEGIN SELECT RAISE(ABORT, 'refused'); END"); err != nil {
		t.Error(err)
	}
	s.turn.Unlock()
	_, err := s.Put(t.Context(), held("new", 2))
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		t.Errorf("%v, want that it is not done, and no word of a record", err)
	}
	mustPut(t, s, held("new", 2)) // by a new connection, which has no such trigger
	if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
		t.Error(err)
	}
	if rec, err := s.Get(t.Context(), rec.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleted: %+v, %v", rec, err)
	}
}

// The last connection to close leaves the log where it is: the next writer need not make it.
func TestTheLogOutlivesTheStore(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	mustPut(t, s, held("k", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Error(err)
	}
}

// A connection's errors are those of its statements, each time.
func TestStatementsThatFail(t *testing.T) {
	s := testOpen(t, testPath(t))
	w, err := dialWriter(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		if _, err := w.exec("nonsense"); err == nil {
			t.Error("nonsense is carried out")
		}
		if err := w.query(func([]driver.Value) error { return nil }, "nonsense"); err == nil {
			t.Error("nonsense is answered")
		}
		if v, err := w.value("SELECT 1 UNION ALL SELECT 2"); v != int64(1) || err != nil {
			t.Errorf("the first row: %v, %v", v, err)
		}
	}
	if _, err := w.rows(s.reading(), "SELECT 'k', 'v', '', 'never', 'body'"); err == nil {
		t.Error("a row whose columns have other types is read")
	}
	// What was in the way of a write, and can't be read, is no success.
	for _, statement := range []string{
		"CREATE TEMP VIEW records AS SELECT 'k' AS key, 'v' AS version, '' AS boot, 'never' AS written, 'body' AS body",
		"CREATE TEMP TRIGGER kept INSTEAD OF UPDATE ON records BEGIN SELECT 1; END",
	} {
		if _, err := w.exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if result, err := s.do(w, &request{key: "k", version: "w", next: "n", body: "b"}, 0); err == nil {
		t.Errorf("%v, want the error of the read", result)
	}
}

// What has passed by the wall clock is never more than that, and nothing where the text is no time.
func TestWallClockOfAMark(t *testing.T) {
	const now = 36 * 36 * 36
	for wall, want := range map[string]time.Duration{
		"0": now * time.Millisecond, "zz": (now - 35*37) * time.Millisecond, "1000": 0, "1001": 0, "-1": 0, "": 0, "!": 0,
	} {
		if got := (mark{wall: wall}).since(now); got != want {
			t.Errorf("%q: %v, want %v", wall, got, want)
		}
	}
}
