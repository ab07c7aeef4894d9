// Package fencepgx has the guards of fencesql in transactions of pgx, without database/sql:
//
//	marks, err := fencesql.NewTable(fencesql.PostgreSQL, "leasehold_fence")
//	_, err = pool.Exec(ctx, marks.Schema()) // once
//	…
//	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		if err := fencepgx.Admit(ctx, marks, tx, l.Sequencer()); err != nil { // first, and before any read
//			return err
//		}
//		_, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - $1 WHERE id = $2", 100, 7)
//		return err
//	})
package fencepgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
)

// Admit is [fencesql.Table.Admit] in a transaction of pgx, of a connection or of a pool.
func Admit(ctx context.Context, marks *fencesql.Table, tx pgx.Tx, s fence.Sequencer) error {
	return marks.AdmitOn(ctx, conn{tx}, s)
}

// Admitted is [fencesql.Columns.Admitted] for an UPDATE in a transaction of pgx.
func Admitted(ctx context.Context, c *fencesql.Columns, tx pgx.Tx, tag pgconn.CommandTag, s fence.Sequencer, rows int64, where string, args ...any) error {
	return c.AdmittedOn(ctx, conn{tx}, tag.RowsAffected(), s, rows, where, args...)
}

// conn is a [fencesql.Conn].
type conn struct{ tx pgx.Tx }

func (c conn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := c.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (c conn) QueryMark(ctx context.Context, query string, args ...any) (token int64, holder string, found bool, err error) {
	err = c.tx.QueryRow(ctx, query, args...).Scan(&token, &holder)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, "", false, nil
	}
	return token, holder, err == nil, err
}
