package file

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection to the database, for one goroutine at a time. It stands on the driver
// itself: the pool of database/sql costs a third of a short read, and what has to happen on one
// connection under one lock is plainer so.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue // of the statement that is carried out
}

// Every connection is set up so. The checkpoint at 1000 pages is SQLite's default; the limit only
// shrinks a log that a long-lived reader of another program had made grow. busyTimeout is a safety
// net: what Leasehold does is ordered by the file lock, so a connection meets SQLite's own locks
// only while another one recovers the log after a crash, and where another program uses the file.
const (
	busyTimeout = "2000" // ms
	settings    = "_pragma=busy_timeout(" + busyTimeout + ")&_pragma=synchronous(FULL)&_pragma=journal_size_limit(33554432)" +
		"&_pragma=temp_store(MEMORY)&_pragma=trusted_schema(OFF)&_pragma=cell_size_check(ON)&_defensive=1&_error_rc=1&mode=rw"
)

// dial opens a connection to a file that exists.
func dial(path string, extra string) (*conn, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // a drive letter
		slashed = "/" + slashed
	}
	dsn := url.URL{Scheme: "file", Path: slashed, RawQuery: settings + extra}
	raw, err := (&sqlite.Driver{}).Open(dsn.String())
	if err != nil {
		return nil, err
	}
	// Without this the last connection to close would delete the log, and the next writer would pay
	// for growing it anew.
	if fc, ok := raw.(sqlite.FileControl); ok {
		if _, err := fc.FileControlPersistWAL("main", 1); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	return &conn{raw: raw, stmts: map[string]driver.Stmt{}}, nil
}

func dialWriter(path string) (*conn, error) { return dial(path, "") }

func dialReader(path string) (*conn, error) { return dial(path, "&_query_only=1") }

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// prepare returns the statement, which the connection keeps.
func (c *conn) prepare(query string) (driver.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.raw.Prepare(query)
	if err == nil {
		c.stmts[query] = st
	}
	return st, err
}

// bind returns args as the driver takes them. It has copied them when the statement was begun.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed. Arguments are strings and int64s.
func (c *conn) exec(query string, args ...any) (int64, error) {
	st, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := st.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query calls each with every row of the answer, until that returns an error.
func (c *conn) query(each func(row []driver.Value) error, query string, args ...any) error {
	st, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := st.(driver.StmtQueryContext).QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err = rows.Next(row)
		if err == nil {
			err = each(row)
		}
		if err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

// value returns the first column of the first row of the answer.
func (c *conn) value(query string) (v driver.Value, err error) {
	err = c.query(func(row []driver.Value) error {
		v = row[0]
		return io.EOF
	}, query)
	return v, err
}

// code returns SQLite's primary and extended result codes, or 0 for an error that isn't SQLite's.
func code(err error) (primary, extended int) {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff, e.Code()
	}
	return 0, 0
}

// explain says what an error of SQLite means for the file at path and what to do about it.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var why string
	switch primary, _ := code(err); primary {
	case sqlite3.SQLITE_FULL:
		why = "the disk is full: free space on its file system, then it works again"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		why = "the file, its folder or its file system is read-only: make them writable for this user"
	case sqlite3.SQLITE_NOTADB:
		why = "not an SQLite database, or one whose beginning was overwritten: name another file, put back a copy, or move this one away"
	case sqlite3.SQLITE_CORRUPT:
		why = "the file is damaged: put back a copy, or move it away with its -wal and -shm files to begin again"
	case sqlite3.SQLITE_IOERR:
		why = "the operating system reported an I/O error: look into the kernel's log, check disk and free space"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		why = "another program, a database shell or a backup perhaps, keeps the file locked: end it"
	case sqlite3.SQLITE_CANTOPEN:
		why = "the file can't be opened: see that it and its -wal and -shm files are there and writable for this user"
	default:
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %s: %w", path, why, err)
}
