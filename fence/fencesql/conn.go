package fencesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/fence"
)

// Tx is the caller's transaction: a *[sql.Tx], or a wrapper of one, such as a *sqlx.Tx, or the
// ConnPool of a gorm transaction. Commit and Rollback aren't called. They distinguish a transaction
// from a database handle, on which a check would guard nothing.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Conn is a transaction of a driver that doesn't go through database/sql. Package fencepgx has that
// of pgx.
type Conn interface {
	// Exec runs a statement, and returns how many rows it has written.
	Exec(ctx context.Context, query string, args ...any) (rows int64, err error)

	// QueryMark reads a number and a text from the first row of a query; found is false when there
	// is no row.
	QueryMark(ctx context.Context, query string, args ...any) (token int64, holder string, found bool, err error)
}

// Querier is a [Tx], a *[sql.Conn] or a *[sql.DB].
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// reader is the part of a Conn that reads.
type reader interface {
	QueryMark(ctx context.Context, query string, args ...any) (token int64, holder string, found bool, err error)
}

// sqlReader is the part of a Conn that a Querier can do, and sqlConn the Conn of a Tx.
type (
	sqlReader struct{ Querier }
	sqlConn   struct {
		sqlReader
		tx Tx
	}
)

func (c sqlReader) QueryMark(ctx context.Context, query string, args ...any) (token int64, holder string, found bool, err error) {
	err = c.QueryRowContext(ctx, query, args...).Scan(&token, &holder)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", false, nil
	}
	return token, holder, err == nil, err
}

func (c sqlConn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := c.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// readMark reads one mark, whose token is least or more. There may be none.
func readMark(ctx context.Context, c reader, least int64, query string, args ...any) (mark fence.Mark, found bool, err error) {
	token, holder, found, err := c.QueryMark(ctx, query, args...)
	if found && err == nil && (token < least || fence.Token(token) > fence.MaxToken) {
		err = fmt.Errorf("the stored token is %d: want %d to %d: find out who wrote it", token, least, fence.MaxToken)
	}
	if err != nil || !found {
		return fence.Mark{}, false, err
	}
	return fence.Mark{Token: fence.Token(token), Holder: holder}, true, nil
}
