package fencesql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold/leasehold/fence"
)

// Table is a table of marks: for each name of a lease the highest token that was admitted, and whose it was. It belongs into the
// database that it guards, so that both are lost, and restored, together. Its rows must not be deleted. All methods may be
// called from any goroutine.
type Table struct {
	dialect Dialect
	schema  string
	look    string // for a mark that isn't lower than the token
	raise   string // the mark, if it is lower
}

// NewTable returns the table of that name, which may begin with a schema and a dot. It does no I/O.
func NewTable(d Dialect, name string) (*Table, error) {
	if err := d.check(name); err != nil {
		return nil, err
	}
	t := &Table{dialect: d}
	t.schema = "CREATE TABLE IF NOT EXISTS " + name + " (name text NOT NULL PRIMARY KEY, token bigint NOT NULL, holder text NOT NULL)"
	t.look = "SELECT token, holder FROM " + name + " WHERE name = " + d.param(1) + " AND token >= " + d.param(2)
	if d == PostgreSQL {
		t.look += " FOR SHARE"
	}
	t.raise = "INSERT INTO " + name + " AS mark (name, token, holder) VALUES (" + d.param(1) + ", " + d.param(2) + ", " + d.param(3) + ")" +
		" ON CONFLICT (name) DO UPDATE SET token = excluded.token, holder = excluded.holder WHERE mark.token < excluded.token"
	return t, nil
}

// Schema returns the statement that makes the table, unless there is one.
func (t *Table) Schema() string { return t.schema }

// Admit lets the caller's transaction go on, or returns a *[fence.StaleError], after which it has to be rolled back, as after any
// other error: one that matches [fence.ErrMalformed] when s can't be a sequencer, or one of the database. A sequencer that came
// from outside has to be of the lease that guards what is written: ask [fence.Sequencer.Of] first.
//
// The first transaction of a new token raises the mark, in the caller's transaction: it waits until those of earlier terms have
// ended, and the mark is raised when it commits. The others write nothing. On PostgreSQL they share a lock on the mark's row
// and run side by side, and while some of an earlier term always overlap, the first of a later one waits; on SQLite only one
// transaction writes at a time anyhow. What is rolled back to a savepoint from before
// Admit is not guarded any more. It blocks until it has the lock, until ctx is done, or for as long as the database waits for locks.
func (t *Table) Admit(ctx context.Context, tx *sql.Tx, s fence.Sequencer) error {
	if err := s.Valid(); err != nil {
		return err
	}
	if t.dialect == PostgreSQL {
		// A mark that has to be raised isn't locked here: two transactions that share the lock couldn't both raise it.
		if found, err := t.judge(ctx, tx, s); found || err != nil {
			return err
		}
	}
	raised, err := tx.ExecContext(ctx, t.raise, s.Name, int64(s.Token), s.Holder)
	if err != nil {
		return unsettled(s, err)
	}
	n, err := raised.RowsAffected()
	if err != nil {
		return unsettled(s, err)
	}
	if n == 1 {
		return nil
	}
	found, err := t.judge(ctx, tx, s)
	if err == nil && !found {
		err = unsettled(s, fmt.Errorf("its mark was there and isn't any more: marks must not be deleted"))
	}
	return err
}

// judge judges s by its mark, if that is not lower, and locks it. Found says whether there is such a mark.
func (t *Table) judge(ctx context.Context, tx *sql.Tx, s fence.Sequencer) (found bool, err error) {
	mark, found, err := readMark(ctx, tx, t.look, s.Name, int64(s.Token))
	if err != nil {
		return false, unsettled(s, err)
	}
	if !found {
		return false, nil
	}
	_, err = mark.Admit(s.Name, s.Holder, s.Token)
	return true, err
}

func unsettled(s fence.Sequencer, err error) error {
	return fmt.Errorf("%s: the mark of token %d: %w", s.Name, s.Token, err)
}
