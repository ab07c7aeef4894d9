package fencesql

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/leasehold/leasehold/fence"
)

// Table is a table of marks: for each name of a lease the highest token that was admitted, and
// whose it was. It belongs into the database that it guards, so that both are lost, and restored,
// together. Its rows must not be deleted. All methods may be called from any goroutine.
type Table struct {
	dialect Dialect
	name    string
	schema  string
	look    string // for a mark that isn't lower than the token, or is none
	raise   string // the mark, if it is lower
}

// NewTable returns the table of that name, which may begin with a schema and a dot. It does no I/O.
// Spell the name the same everywhere, because on PostgreSQL the queue of [Table.Admit] is found by
// it.
func NewTable(d Dialect, name string) (*Table, error) {
	if err := d.check(name); err != nil {
		return nil, err
	}
	t := &Table{dialect: d, name: name}
	t.schema = "CREATE TABLE IF NOT EXISTS " + name + " (name text NOT NULL PRIMARY KEY, token bigint NOT NULL, holder text NOT NULL)"
	const refuses = " WHERE mark.name = %s AND (mark.token >= %s OR mark.token < 1)"
	const conflict = " ON CONFLICT (name) DO UPDATE SET token = excluded.token, holder = excluded.holder WHERE mark.token < excluded.token AND mark.token > 0"
	insert := "INSERT INTO " + name + " AS mark (name, token, holder) "
	where := fmt.Sprintf(refuses, d.param(1), d.param(2))
	if d == PostgreSQL {
		// Locks on rows have no queue: those who share one pass by who waits to raise the mark.
		// Advisory locks have one. The token in the key, which adds nothing, has the row found
		// before the lock is taken: two that shared it couldn't both raise the mark.
		t.look = "SELECT mark.token, mark.holder FROM " + name + " AS mark, LATERAL (SELECT pg_advisory_xact_lock_shared($3 + 0 * mark.token)::text) AS queue" +
			where + " FOR SHARE OF mark"
		t.raise = insert + "SELECT $1::text, $2::bigint, $3::text FROM (SELECT pg_advisory_xact_lock($4)::text) AS queue" + conflict
		return t, nil
	}
	t.look = "SELECT mark.token, mark.holder FROM " + name + " AS mark" + where
	t.raise = insert + "VALUES (" + d.param(1) + ", " + d.param(2) + ", " + d.param(3) + ")" + conflict
	return t, nil
}

// Schema returns the statement that makes the table, unless there is one.
func (t *Table) Schema() string { return t.schema }

// Admit returns nil if the caller's transaction may continue, and a *[fence.StaleError] if not.
// After any error roll the transaction back. Other errors are one that matches [fence.ErrMalformed]
// when s can't be a sequencer, and those of the database. A sequencer that came from outside has to
// be of the lease that guards the data: call [fence.Sequencer.Of] first.
//
// The first transaction of a new token raises the mark, in the caller's transaction. It waits until
// admitted transactions of earlier terms have ended, and the mark counts when it commits. The other
// transactions write nothing. What is rolled back to a savepoint from before Admit is not guarded
// any more.
//
// On PostgreSQL the others share a lock and run in parallel. Once the first of a later term waits,
// further ones of an earlier term wait behind it. So it waits for one transaction's time. The locks
// are advisory ones, of the name of the table and of the lease, and one on the mark's row. On
// SQLite only one transaction writes at a time anyhow.
//
// Admit blocks until it has the lock, until ctx is done, or as long as the database waits for
// locks.
func (t *Table) Admit(ctx context.Context, tx Tx, s fence.Sequencer) error {
	return t.AdmitOn(ctx, sqlConn{sqlReader{tx}, tx}, s)
}

// AdmitOn is [Table.Admit] for a transaction that is not of database/sql.
func (t *Table) AdmitOn(ctx context.Context, c Conn, s fence.Sequencer) error {
	if err := s.Valid(); err != nil {
		return err
	}
	raise := []any{s.Name, int64(s.Token), s.Holder}
	if t.dialect == PostgreSQL {
		// A mark that has to be raised isn't locked here: two transactions that share the lock
		// couldn't both raise it.
		if found, err := t.judge(ctx, c, s); found || err != nil {
			return err
		}
		raise = append(raise, t.queue(s.Name))
	}
	n, err := c.Exec(ctx, t.raise, raise...)
	if err != nil {
		return unsettled(s, err)
	}
	if n == 1 {
		return nil
	}
	found, err := t.judge(ctx, c, s)
	if err == nil && !found {
		err = unsettled(s, fmt.Errorf("its mark was there and isn't any more: marks must not be deleted"))
	}
	return err
}

// judge judges s by its mark, if that is not lower, and locks it. Found says whether there is such
// a mark.
func (t *Table) judge(ctx context.Context, c Conn, s fence.Sequencer) (found bool, err error) {
	args := []any{s.Name, int64(s.Token)}
	if t.dialect == PostgreSQL {
		args = append(args, t.queue(s.Name))
	}
	mark, found, err := readMark(ctx, c, 1, t.look, args...)
	if err != nil {
		return false, unsettled(s, err)
	}
	if !found {
		return false, nil
	}
	_, err = mark.Admit(s.Name, s.Holder, s.Token)
	return true, err
}

// queue returns the key of the advisory lock that those wait for who write under a lease. Two
// leases of one key would only wait for each other.
func (t *Table) queue(lease string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("leasehold fence\x00" + t.name + "\x00" + lease)) // never fails
	// All 64 bits, as a key may have any.
	return int64(h.Sum64())
}

func unsettled(s fence.Sequencer, err error) error {
	return fmt.Errorf("%s: the mark of token %d: %w", s.Name, s.Token, err)
}
