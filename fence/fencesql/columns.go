package fencesql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/fence"
)

// Columns are two columns of the caller's own table, fence_token and fence_holder, that make each
// row its own mark. All methods may be called from any goroutine.
//
//	f, err := columns.Fragment(l.Sequencer(), 3) // whose arguments are $3 and $4
//	res, err := db.ExecContext(ctx, "UPDATE accounts SET balance = $1, "+f.Set+" WHERE id = $2 AND "+f.Where,
//		append([]any{100, 7}, f.Args...)...)
//	err = columns.Admitted(ctx, db, res, l.Sequencer(), 1, "id = $1", 7)
//
// In an upsert, the fragment stands after DO UPDATE. A deleted row takes its mark along, so an
// earlier term may insert it again. Flag rows as deleted instead, or use a [Table].
type Columns struct {
	dialect Dialect
	table   string
}

// The names of the columns.
const (
	tokenColumn  = "fence_token"
	holderColumn = "fence_holder"
)

// NewColumns returns the columns of a table, whose name may begin with a schema and a dot. It does
// no I/O. Statements have to call the table by that name, without an alias.
func NewColumns(d Dialect, table string) (*Columns, error) {
	if err := d.check(table); err != nil {
		return nil, err
	}
	return &Columns{d, table}, nil
}

// Schema returns the statements that add the columns to the table. They fail if there are such
// columns.
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

// Fragment returns what admits an UPDATE under s, and makes s the mark of the row. The first of its
// two arguments is the statement's argument of that number, from 1. It returns an error that
// matches [fence.ErrMalformed] when s can't be a sequencer.
func (c *Columns) Fragment(s fence.Sequencer, first int) (Fragment, error) {
	if err := s.Valid(); err != nil {
		return Fragment{}, err
	}
	if first < 1 {
		return Fragment{}, fmt.Errorf("SQL guard: first argument %d: want 1 or more", first)
	}
	token, holder := c.dialect.param(first), c.dialect.param(first+1)
	return Fragment{Set: assigns(token, holder), Where: c.admits(token, token, holder), Args: []any{int64(s.Token), s.Holder}}, nil
}

// Plain is a [Fragment] with a ? for each argument, in order, as query builders want it: gorm,
// sqlx.Rebind.
type Plain struct {
	Set       string         // assignments for SET
	SetArgs   []any          // its two arguments
	Values    map[string]any // what Set assigns, by column
	Where     string         // a condition for WHERE, in parentheses
	WhereArgs []any          // its three arguments
}

// Plain returns what [Columns.Fragment] returns, for a statement whose placeholders are question
// marks without numbers.
func (c *Columns) Plain(s fence.Sequencer) (Plain, error) {
	if err := s.Valid(); err != nil {
		return Plain{}, err
	}
	token := int64(s.Token)
	return Plain{
		Set: assigns("?", "?"), SetArgs: []any{token, s.Holder}, Values: map[string]any{tokenColumn: token, holderColumn: s.Holder},
		Where: c.admits("?", "?", "?"), WhereArgs: []any{token, token, s.Holder},
	}, nil
}

func assigns(token, holder string) string {
	return fmt.Sprintf("%s = %s, %s = %s", tokenColumn, token, holderColumn, holder)
}

// admits is the condition that a row's mark is lower than a token, or that token and of that
// holder.
func (c *Columns) admits(lower, same, holder string) string {
	return fmt.Sprintf("(%[1]s.%[2]s >= 0 AND (%[1]s.%[2]s < %[4]s OR %[1]s.%[2]s = %[5]s AND %[1]s.%[3]s = %[6]s))",
		c.table, tokenColumn, holderColumn, lower, same, holder)
}

// AllRows stands for an unknown number of rows in [Columns.Admitted].
const AllRows = 0

// Admitted checks an UPDATE with a [Fragment] of s that was meant for that many rows. It returns
// nil when the UPDATE wrote them all. Otherwise it reads the mark of one of the rows that where and
// args select, if possible one that refuses s. For such a row it returns a *[fence.StaleError].
// Otherwise the error matches [sql.ErrNoRows]: there are no such rows, or another condition of the
// UPDATE didn't hold. Some of the rows may have been written then, so roll the transaction back. It
// returns another error when more rows were written.
//
// With [AllRows] the UPDATE is meant for all rows that where selects, and Admitted always reads. It
// returns nil when some were written and none of the others refuses s. It blocks for one read at
// most.
func (c *Columns) Admitted(ctx context.Context, q Querier, res sql.Result, s fence.Sequencer, rows int64, where string, args ...any) error {
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	return c.admitted(ctx, sqlReader{q}, n, s, rows, where, args...)
}

// AdmittedRows is [Columns.Admitted] for an UPDATE that wrote n rows, as gorm reports them.
func (c *Columns) AdmittedRows(ctx context.Context, q Querier, n int64, s fence.Sequencer, rows int64, where string, args ...any) error {
	return c.admitted(ctx, sqlReader{q}, n, s, rows, where, args...)
}

// AdmittedOn is [Columns.Admitted] for a transaction that is not of database/sql, and an UPDATE
// that wrote n rows.
func (c *Columns) AdmittedOn(ctx context.Context, conn Conn, n int64, s fence.Sequencer, rows int64, where string, args ...any) error {
	return c.admitted(ctx, conn, n, s, rows, where, args...)
}

func (c *Columns) admitted(ctx context.Context, r reader, n int64, s fence.Sequencer, rows int64, where string, args ...any) error {
	switch {
	case rows < 0:
		return fmt.Errorf("SQL guard: %d rows: want how many the UPDATE was meant for, or fencesql.AllRows", rows)
	case rows != AllRows && n == rows:
		return nil
	case rows != AllRows && n > rows:
		return fmt.Errorf("%s: %d rows were written, and %d meant: roll back, and look at the condition of the UPDATE", c.table, n, rows)
	}
	first := len(args) + 1
	token, holder := c.dialect.param(first), c.dialect.param(first+1)
	query := fmt.Sprintf("SELECT %s, %s FROM %s WHERE (%s) ORDER BY CASE WHEN %s THEN 1 ELSE 0 END LIMIT 1",
		tokenColumn, holderColumn, c.table, where, c.admits(token, token, holder))
	mark, found, err := readMark(ctx, r, 0, query, append(slices.Clone(args), int64(s.Token), s.Holder)...)
	if err != nil {
		return fmt.Errorf("why a write under token %d of %s matched %d rows can't be told: %w", s.Token, s.Name, n, err)
	}
	if found {
		if _, err := mark.Admit(s.Name, s.Holder, s.Token); err != nil {
			return partly(n, err)
		}
	}
	switch {
	case rows == AllRows && n > 0:
		return nil
	case !found:
		return partly(n, fmt.Errorf("%s: no such row: %w", c.table, sql.ErrNoRows))
	}
	return partly(n, fmt.Errorf("%s: the fence admits it, but another condition doesn't hold: %w", c.table, sql.ErrNoRows))
}

// partly adds to an error how many rows were written all the same.
func partly(n int64, err error) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("%d rows were written, and not all: roll back: %w", n, err)
}
