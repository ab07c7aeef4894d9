package fencesql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold/leasehold/fence"
)

// Columns are two columns of the caller's own table, fence_token and fence_holder, that make each row its own mark. All methods
// may be called from any goroutine.
//
//	f, err := columns.Fragment(l.Sequencer(), 3) // whose arguments are $3 and $4
//	res, err := db.ExecContext(ctx, "UPDATE accounts SET balance = $1, "+f.Set+" WHERE id = $2 AND "+f.Where,
//		append([]any{100, 7}, f.Args...)...)
//	err = columns.Admitted(ctx, db, res, l.Sequencer(), "id = $1", 7)
//
// In an upsert, the fragment stands after DO UPDATE. A row that is deleted takes its mark along, so an earlier term may insert it
// again: mark rows as deleted, or use a [Table].
type Columns struct {
	dialect Dialect
	table   string
}

// The names of the columns.
const (
	tokenColumn  = "fence_token"
	holderColumn = "fence_holder"
)

// NewColumns returns the columns of a table, whose name may begin with a schema and a dot. It does no I/O. Statements call the
// table by that name: by no alias.
func NewColumns(d Dialect, table string) (*Columns, error) {
	if err := d.check(table); err != nil {
		return nil, err
	}
	return &Columns{d, table}, nil
}

// Schema returns the statements that add the columns to the table. They fail if there are such columns.
func (c *Columns) Schema() string {
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s bigint NOT NULL DEFAULT 0; ALTER TABLE %s ADD COLUMN %s text NOT NULL DEFAULT ''",
		c.table, tokenColumn, c.table, holderColumn)
}

// Fragment is a piece of an UPDATE: write it in two places, and give the arguments.
type Fragment struct {
	Set   string // assignments for SET, without a comma around them
	Where string // a condition for WHERE, in parentheses
	Args  []any  // the two arguments, which both use
}

// Fragment returns what admits an UPDATE under s, and makes s the mark of the row. The first of its two arguments is the statement's
// argument of that number, from 1. It returns an error that matches [fence.ErrMalformed] when s can't be a sequencer.
func (c *Columns) Fragment(s fence.Sequencer, first int) (Fragment, error) {
	if err := s.Valid(); err != nil {
		return Fragment{}, err
	}
	if first < 1 {
		return Fragment{}, fmt.Errorf("SQL guard: first argument %d: want 1 or more", first)
	}
	token, holder := c.dialect.param(first), c.dialect.param(first+1)
	return Fragment{
		Set: fmt.Sprintf("%s = %s, %s = %s", tokenColumn, token, holderColumn, holder),
		Where: fmt.Sprintf("(%s.%s < %s OR %s.%s = %s AND %s.%s = %s)",
			c.table, tokenColumn, token, c.table, tokenColumn, token, c.table, holderColumn, holder),
		Args: []any{int64(s.Token), s.Holder},
	}, nil
}

// Admitted tells what became of an UPDATE of one row with a [Fragment] of s: nil when the row was written. Otherwise it reads the
// mark of the row that where and args select, and returns a *[fence.StaleError] when that refuses s, or else an error that
// matches [sql.ErrNoRows]: there is no such row, or another condition of the UPDATE didn't hold. It blocks for one read at most.
func (c *Columns) Admitted(ctx context.Context, q Querier, res sql.Result, s fence.Sequencer, where string, args ...any) error {
	n, err := res.RowsAffected()
	if err != nil || n > 0 {
		return err
	}
	mark, found, err := readMark(ctx, q, "SELECT "+tokenColumn+", "+holderColumn+" FROM "+c.table+" WHERE "+where, args...)
	switch {
	case err != nil:
		return fmt.Errorf("why a write under token %d of %s matched no row can't be told: %w", s.Token, s.Name, err)
	case !found:
		return fmt.Errorf("%s: no such row: %w", c.table, sql.ErrNoRows)
	}
	if _, err := mark.Admit(s.Name, s.Holder, s.Token); err != nil {
		return err
	}
	return fmt.Errorf("%s: the fence admits it, but another condition doesn't hold: %w", c.table, sql.ErrNoRows)
}
