package file

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

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
	if err := s.Delete(t.Context(), "", "v"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a deletion of what is no key: %v", err)
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
	writer := s.writer
	s.turn.Unlock()
	for _, c := range []struct {
		what    string
		r       *request
		unknown bool
	}{
		{"what was written", &request{key: "new", next: "v", mark: "|", body: "{}"}, true},
		{"what was not", &request{key: rec.Key, version: "other", next: "v", mark: "|", body: "{}"}, false},
		{"what was written by the same connection later", &request{key: "new", next: "v", mark: "|", body: "{}"}, true},
	} {
		s.turn.Lock()
		err := s.write([]*request{c.r, {key: "beside", next: "v", mark: "|", body: "{}"}})(c.r)
		if s.writer != writer {
			t.Errorf("%s, and COMMIT failed: the connection didn't stay", c.what)
		}
		s.turn.Unlock()
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) != c.unknown {
			t.Errorf("%s, and COMMIT failed: %v", c.what, err)
		}
	}
	rec.Version = "other"
	if _, err := s.Put(t.Context(), rec); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a write that meets another version, after that: %v", err)
	}
}

// What SQLite couldn't write has no commit; after every other error of COMMIT, it may have one.
func TestErrorsOfCommit(t *testing.T) {
	s := testOpen(t, testPath(t))
	mustPut(t, s, held("there", 1))
	for _, c := range []struct {
		what       string
		dial       func(string) (*conn, error)
		statements []string // the last one fails
		primary    int
		unknown    bool
	}{
		{"a full disk", dialWriter, []string{"PRAGMA max_page_count = 1", "CREATE TABLE beside AS SELECT zeroblob(1000000)"}, sqlite3.SQLITE_FULL, false},
		{"a read-only file", dialReader, []string{"DELETE FROM records"}, sqlite3.SQLITE_READONLY, false},
		{"what is neither", dialWriter, []string{"INSERT INTO records (key) VALUES ('there')"}, sqlite3.SQLITE_CONSTRAINT, true},
	} {
		w, err := c.dial(s.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range c.statements {
			_, err = w.exec(statement)
		}
		if primary, _ := code(err); primary != c.primary {
			t.Errorf("%s: %v, want code %d", c.what, err, c.primary)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
		outcome := (&commitError{err}).outcome(err)
		for _, r := range []*request{{key: "written", wrote: true}, {key: "not written"}} {
			if got := outcome(r); !errors.Is(got, err) || errors.Is(got, store.ErrUnknownOutcome) != (c.unknown && r.wrote) {
				t.Errorf("%s, %s: %v", c.what, r.key, got)
			}
		}
	}
}

// A transaction that can't begin does nothing, and none of its writes is told as done.
func TestTransactionThatDoesNotBegin(t *testing.T) {
	s := testOpen(t, testPath(t))
	r := &request{key: "k", next: "v", mark: "|", body: "{}"}
	s.turn.Lock()
	if _, err := s.writer.exec("BEGIN"); err != nil { // one within another is refused
		t.Error(err)
	}
	err := s.write([]*request{r})(r)
	s.turn.Unlock()
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v, want that it is not done", err)
	}
	mustPut(t, s, held("k", 1))
}

// Each write of a batch has its own outcome, whichever of the others is refused.
func TestBatchOfWhichSomeIsRefused(t *testing.T) {
	s := testOpen(t, testPath(t))
	there := mustPut(t, s, held("there", 1))
	refused := &request{key: there.Key, version: "other", next: "v", mark: "|", body: "{}"}
	for i, version := range []string{"", "v0", "v1"} {
		done := &request{key: "k", version: version, next: fmt.Sprint("v", i), mark: "|", body: "{}"}
		batch := []*request{refused, done}
		if i == 1 {
			slices.Reverse(batch)
		}
		s.turn.Lock()
		outcome := s.write(batch)
		s.turn.Unlock()
		if err := outcome(done); err != nil {
			t.Errorf("what is done, %d: %v", i, err)
		}
		if err := outcome(refused); !errors.Is(err, store.ErrConflict) {
			t.Errorf("what is refused, %d: %v", i, err)
		}
		if found, err := s.read(t.Context(), selectRow, "k"); err != nil || len(found) != 1 || found[0].version != done.next {
			t.Errorf("%+v, %v; want version %q", found, err, done.next)
		}
	}
	log := func() []byte {
		content, err := os.ReadFile(s.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	before := log()
	s.turn.Lock()
	err := s.write([]*request{refused})(refused)
	s.turn.Unlock()
	if !errors.Is(err, store.ErrConflict) || !bytes.Equal(before, log()) {
		t.Errorf("%v; the log is as before: %v", err, bytes.Equal(before, log()))
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

// Where the lock file can't be opened twice, nobody knows whether it keeps two holders apart.
func TestLockThatCanNotBeProbed(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("here", 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := openLock(filepath.Join("here", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.lock(); err != nil {
		t.Fatal(err)
	}
	if err := l.probe(); err != nil {
		t.Errorf("a lock that can be probed: %v", err)
	}
	t.Chdir(t.TempDir()) // its name leads nowhere now
	if err := l.probe(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock that can't be probed: %v", err)
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
	writer := s.writer
	s.turn.Unlock()
	_, err := s.Put(t.Context(), held("new", 2))
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		t.Errorf("%v, want that it is not done, and no word of a record", err)
	}
	if writer.raw.(driver.Validator).IsValid() {
		t.Error("the connection is left open")
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
