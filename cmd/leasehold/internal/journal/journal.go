// Package journal keeps what became of names in an SQLite file of its own, for `serve --journal`.
//
// One process has the file at a time: SQLite's exclusive lock goes with its process. Next to it is
// FILE-wal, which belongs to it. The file is bounded: spans that ended longer ago than they are to
// be kept are deleted, and the oldest ones when there are too many. Space that becomes free is used
// again; the file doesn't shrink.
//
// What a crash of the machine takes is at most the last commits: the server fills terms in from the
// records. A file that is damaged is moved aside, as FILE.damaged-TIME, and another one is begun.
package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/server"
)

// The defaults of [Options].
const (
	DefaultKeep = 30 * 24 * time.Hour
	DefaultRows = 1_000_000
)

// Options of a [Journal].
type Options struct {
	Clock clock.Clock
	Keep  time.Duration // how long a span is kept after its end; DefaultKeep if 0
	Rows  int           // how many spans are kept at most; DefaultRows if 0
	// OnMoved, if set, is called when a damaged file was moved aside: what was wrong, and where it
	// is.
	OnMoved func(why, to string)
}

// Journal is a [server.Journal] in a file. It opens the file when it is first used, and again after
// an error.
type Journal struct {
	path string
	opts Options

	mu      sync.Mutex // one at a time
	db      *sql.DB    // nil until the file is open
	is      os.FileInfo
	damaged bool // the file is to be moved aside
	names   map[string]int64
	rows    int // how many there are
	swept   time.Time
	from    time.Time
	pages   int // of the database at most; 0 for any number: of tests
}

var _ server.Journal = (*Journal)(nil)

// New returns the journal in the file at path. It does no I/O. Close it when it is done with.
func New(path string, opts Options) *Journal {
	if opts.Keep == 0 {
		opts.Keep = DefaultKeep
	}
	if opts.Rows == 0 {
		opts.Rows = DefaultRows
	}
	if opts.OnMoved == nil {
		opts.OnMoved = func(string, string) {}
	}
	return &Journal{path: path, opts: opts}
}

// Close closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.close()
}

func (j *Journal) close() error {
	if j.db == nil {
		return nil
	}
	db := j.db
	j.db = nil
	return db.Close()
}

// use calls do with the open file. After an error that is the file's the file is closed.
func (j *Journal) use(ctx context.Context, do func(db *sql.DB) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if j.db == nil {
		if err := j.open(ctx); err != nil {
			return err
		}
	}
	err := j.same()
	if err == nil {
		err = do(j.db)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	j.damaged = j.damaged || isDamage(err)
	return errors.Join(j.explain(err), j.close())
}

// same returns an error when the file is no longer where it was: SQLite would write on to what
// nobody finds.
func (j *Journal) same() error {
	is, err := os.Stat(j.path)
	if err == nil && !os.SameFile(is, j.is) {
		err = errors.New("another file is there now")
	}
	if errors.Is(err, os.ErrNotExist) {
		err = errors.New("the file is gone: another one is begun")
	}
	return err
}

const (
	applicationID = 0x4c534a31 // "LSJ1"; tells the file from other programs' databases
	schemaVersion = 1

	// A name is written once; a row refers to it. What is unique of a span is its name, kind and
	// token, and its beginning where one token may have several. A span without an end has the
	// largest one, so that it is the first in the order of ends.
	schema = `
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE spans (
	id     INTEGER PRIMARY KEY,
	name   INTEGER NOT NULL,
	kind   INTEGER NOT NULL,
	token  INTEGER NOT NULL,
	mark   INTEGER NOT NULL,
	began  INTEGER NOT NULL,
	ends   INTEGER NOT NULL,
	holder TEXT NOT NULL,
	ended  TEXT NOT NULL,
	note   TEXT NOT NULL,
	` + added + `
) STRICT;
CREATE UNIQUE INDEX spans_by_name ON spans (name, kind, token, mark);
CREATE INDEX spans_by_end ON spans (ends);
CREATE TABLE meta (from_ms INTEGER NOT NULL) STRICT;
`
	// What came later, as it is added to a file of an earlier version. Such a version reads and
	// writes the file all the same.
	added = "what TEXT NOT NULL DEFAULT '', session TEXT NOT NULL DEFAULT '', zone TEXT NOT NULL DEFAULT ''"

	settings = "mode=rw&_pragma=busy_timeout(200)&_pragma=locking_mode(EXCLUSIVE)&_pragma=synchronous(NORMAL)&_pragma=trusted_schema(OFF)" +
		"&_pragma=cell_size_check(ON)&_defensive=1&_txlock=immediate"
)

// open opens the file, or begins it. j.mu is held.
func (j *Journal) open(ctx context.Context) (err error) {
	if j.damaged {
		if err := j.moveAside("it is damaged"); err != nil {
			return err
		}
	}
	if err := j.create(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(j.path))
	if err != nil {
		return j.explain(err)
	}
	db.SetMaxOpenConns(1) // the lock is the connection's
	db.SetConnMaxIdleTime(0)
	if err = j.establish(ctx, db); err == nil {
		j.is, err = os.Stat(j.path)
	}
	if err != nil {
		if err = errors.Join(err, db.Close()); code(err) == sqlite3.SQLITE_NOTADB && j.foreign() {
			return fmt.Errorf("%s: not a journal of Leasehold's, nor any SQLite database: name another file, or move this one away", j.path)
		}
		j.damaged = isDamage(err)
		return j.explain(err)
	}
	j.db, j.names, j.swept = db, map[string]int64{}, time.Time{}
	return nil
}

func dsn(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: settings}
	return u.String()
}

// create makes a missing file. One that is there is not opened beside SQLite: closing it would take
// SQLite's locks from this process, which may be those of another database.
func (j *Journal) create() error {
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// foreign reports whether a file that SQLite doesn't know was none of its own before, either. A
// beginning of zeros is what a crash leaves behind.
func (j *Journal) foreign() bool {
	f, err := os.Open(j.path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 16)
	n, _ := io.ReadFull(f, head) // of a shorter one, what there is
	return string(head) != "SQLite format 3\x00" && strings.Trim(string(head[:n]), "\x00") != ""
}

// establish makes the tables where there are none.
func (j *Journal) establish(ctx context.Context, db *sql.DB) error {
	var id, version, tables int
	err := errors.Join(
		db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id), db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version),
		db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables))
	switch {
	case err != nil:
		return err
	case id != applicationID && (id != 0 || tables != 0):
		return fmt.Errorf("an SQLite database of another program (application_id %d, want %d): name another file", id, applicationID)
	case version > schemaVersion:
		return fmt.Errorf("written by a newer Leasehold: its schema version is %d, this program knows up to %d: upgrade this program", version, schemaVersion)
	}
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if tables == 0 {
		if err := j.make(ctx, db); err != nil {
			return err
		}
	}
	if err := widen(ctx, db); err != nil {
		return err
	}
	if j.pages > 0 {
		if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", j.pages)); err != nil {
			return err
		}
	}
	// This takes the lock for good, and shows whether the file can be written.
	var from int64
	if _, err := db.ExecContext(ctx, "UPDATE meta SET from_ms = from_ms"); err != nil {
		return err
	}
	err = errors.Join(db.QueryRowContext(ctx, "SELECT from_ms FROM meta").Scan(&from), db.QueryRowContext(ctx, "SELECT count(*) FROM spans").Scan(&j.rows))
	j.from = time.UnixMilli(from).UTC()
	return err
}

// widen adds the columns that a file of an earlier version doesn't have.
func widen(ctx context.Context, db *sql.DB) error {
	for column := range strings.SplitSeq(added, ", ") {
		name, _, _ := strings.Cut(column, " ")
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_info('spans') WHERE name = ?", name).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if _, err := db.ExecContext(ctx, "ALTER TABLE spans ADD COLUMN "+column); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) make(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, schema+fmt.Sprintf("INSERT INTO meta VALUES (%d); PRAGMA application_id = %d; PRAGMA user_version = %d",
		j.opts.Clock.Wall().UnixMilli(), applicationID, schemaVersion))
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// moveAside gives a damaged file another name, so that a new one can be begun.
func (j *Journal) moveAside(why string) error {
	to := j.path + ".damaged-" + j.opts.Clock.Wall().UTC().Format("20060102T150405")
	if err := os.Rename(j.path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %s, and can't be moved aside: %w", j.path, why, err)
	}
	if err := os.Rename(j.path+"-wal", to+"-wal"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s-wal: it can't be moved aside: %w", j.path, err)
	}
	j.damaged = false
	j.opts.OnMoved(why, to)
	return nil
}

func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func isDamage(err error) bool {
	return code(err) == sqlite3.SQLITE_CORRUPT || code(err) == sqlite3.SQLITE_NOTADB
}

// explain says what an error means, and what to do about it.
func (j *Journal) explain(err error) error {
	var why string
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		why = "the disk is full: free space on its file system"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		why = "the file, its folder or its file system is read-only: make them writable for this user"
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		why = "the file is damaged: it is moved aside, and another one is begun"
	case sqlite3.SQLITE_IOERR:
		why = "the operating system reported an I/O error: look into the kernel's log, check disk and free space"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		why = "another server writes to this file: give each a file of its own"
	case sqlite3.SQLITE_CANTOPEN:
		why = "the file can't be opened: see that its folder is there and writable for this user"
	default:
		if strings.HasPrefix(err.Error(), j.path) {
			return err
		}
		return fmt.Errorf("%s: %w", j.path, err)
	}
	return fmt.Errorf("%s: %s: %w", j.path, why, err)
}
