package file

import (
	"errors"
	"fmt"
)

const (
	applicationID = 0x4c534831 // "LSH1"; tells the file from other programs' databases
	schemaVersion = 1

	// The rows are in a tree of their own, beside the index of the keys: a renewal writes one page
	// of it. In a table WITHOUT ROWID a row of more than 1,000 bytes, which a record with its past
	// is, goes on in pages that each search reads, of every row that it passes. Files from before
	// have such a table; the statements are the same.
	schema = `CREATE TABLE records (
		key     TEXT NOT NULL PRIMARY KEY,
		version TEXT NOT NULL,
		boot    TEXT NOT NULL,
		written INTEGER NOT NULL,
		body    TEXT NOT NULL
	) STRICT`
)

// number reads a pragma whose value is one.
func (c *conn) number(pragma string) (int64, error) {
	v, err := c.value("PRAGMA " + pragma)
	n, _ := v.(int64)
	return n, err
}

// establish sees that the database behind w is a writable one of Leasehold's, and makes it one when
// it is empty. The file lock is held.
func establish(path string, w *conn) error {
	if err := recognise(path, w); err != nil {
		return err
	}
	mode, err := w.value("PRAGMA journal_mode = WAL")
	if err != nil {
		return explain(path, err)
	}
	if mode != "wal" {
		return fmt.Errorf("%s: its file system has no shared memory, which SQLite's log needs (journal_mode stays %v): put the file on a local disk", path, mode)
	}
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return explain(path, err)
	}
	changed, err := upgrade(path, w)
	end := "ROLLBACK"
	if changed && err == nil {
		end = "COMMIT"
	}
	_, endErr := w.exec(end)
	return errors.Join(err, explain(path, endErr))
}

// recognise returns an error for a file that isn't Leasehold's, before anything in it is touched.
func recognise(path string, w *conn) error {
	id, err := w.number("application_id")
	if err != nil {
		return explain(path, err)
	}
	tables, err := w.value("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return explain(path, err)
	}
	if id != applicationID && (id != 0 || tables != int64(0)) {
		return fmt.Errorf("%s: an SQLite database of another program (application_id %d, want %d): name another file", path, id, applicationID)
	}
	return nil
}

// upgrade brings the schema to this version, inside a transaction, and reports whether anything is
// to be committed.
func upgrade(path string, w *conn) (changed bool, err error) {
	version, err := w.number("user_version")
	if err != nil {
		return false, explain(path, err)
	}
	switch {
	case version == schemaVersion:
		return false, prove(path, w)
	case version > schemaVersion:
		return false, fmt.Errorf("%s: written by a newer Leasehold: its schema version is %d, this program knows up to %d: upgrade this program", path, version, schemaVersion)
	}
	for _, stmt := range []string{
		schema,
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
	} {
		if _, err := w.exec(stmt); err != nil {
			return false, explain(path, err)
		}
	}
	return true, nil
}

// prove sees that the table is there and can be written, inside a transaction that is rolled back.
// A file that is read-only opens without an error, even for BEGIN IMMEDIATE, and shows only when
// something is changed.
func prove(path string, w *conn) error {
	if _, err := w.prepare(selectRow); err != nil {
		return explain(path, err)
	}
	_, err := w.exec(insertRow, "", "", "", int64(0), "")
	return explain(path, err)
}

// checkedBytes is how large a file may be to be read through at each Open: that takes a few
// milliseconds.
const checkedBytes = 1 << 20

// inspect looks a small database over for damage. SQLite reports damage elsewhere when it meets it.
func inspect(path string, c *conn) error {
	pages, err := c.number("page_count")
	if err != nil {
		return explain(path, err)
	}
	size, err := c.number("page_size")
	if err != nil {
		return explain(path, err)
	}
	if pages*size > checkedBytes {
		return nil
	}
	found, err := c.value("PRAGMA quick_check(1)")
	if err != nil {
		return explain(path, err)
	}
	if found != "ok" {
		return fmt.Errorf("%s: the file is damaged (%v): put back a copy, or move it away with its -wal and -shm files to begin again", path, found)
	}
	return nil
}
