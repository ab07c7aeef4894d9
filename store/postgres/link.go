package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/clock"
)

// link is what is known of a connection. A statement takes one round trip on it from its first use
// on, since a holder may have no time for another: it is prepared after that, where that goes fast.
type link struct {
	conn     *pgx.Conn
	near     bool              // the last answer came soon
	prepared map[string]string // names of statements
}

const (
	near         = 20 * time.Millisecond // within which a server that is near answers
	prepareLimit = time.Second
)

// linkKey is where a connection has its link.
const linkKey = "leasehold.link"

func linkOf(conn *pgx.Conn) *link {
	data := conn.PgConn().CustomData()
	l, ok := data[linkKey].(*link)
	if !ok {
		l = &link{conn: conn, prepared: map[string]string{}}
		data[linkKey] = l
	}
	return l
}

// send runs the statement on the connection; mode is how those that aren't prepared are sent.
func (l *link) send(ctx context.Context, mode pgx.QueryExecMode, q question) error {
	sql := q.sql
	if mode == pgx.QueryExecModeCacheStatement {
		mode = pgx.QueryExecModeExec
		if name, ok := l.prepared[sql]; ok {
			sql = name
		}
	}
	began := clock.System().Now()
	rows, err := l.conn.Query(ctx, sql, append([]any{mode}, q.args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := q.scan(rows); err != nil {
			return err
		}
	}
	rows.Close() // the commit comes after the last row, and can fail
	l.near = clock.System().Now().Sub(began) < near
	return rows.Err()
}

// prepare prepares a statement that was answered, for its next use, where the server is near.
func (l *link) prepare(ctx context.Context, mode pgx.QueryExecMode, q question) error {
	if _, ok := l.prepared[q.sql]; ok || q.seldom || !l.near || mode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), prepareLimit)
	defer cancel()
	// Behind a pooler, a name must never stand for another statement.
	hash := sha256.Sum256([]byte(q.sql))
	name := "leasehold_" + hex.EncodeToString(hash[:16])
	_, err := l.conn.Prepare(ctx, name, q.sql)
	if err == nil {
		l.prepared[q.sql] = name
	}
	return err
}
