package postgres

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// SQLSTATEs that are told apart.
const (
	codeReadOnly      = "25006"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeLockTimeout   = "55P03"

	// Said by the server, or by a pooler, of a statement or a commit that may have been carried
	// out.
	codeCompletionUnknown = "40003"
	codeResolutionUnknown = "08007"

	codeDuplicateTable  = "42P07"
	codeDuplicateObject = "42710" // the table's row type
	codeNoStatement     = "26000" // prepared on another server process
	codeStatementThere  = "42P05" // by somebody else
	codeCachedPlan      = "0A000" // the table was changed
)

const maxRetries = 10 // of a statement that was rolled back for the sake of others

// question is one statement, and what is done with its answer.
type question struct {
	sql    string
	args   []any
	scan   func(pgx.Rows) error // called for each row
	seldom bool                 // it isn't worth being prepared
	change change               // that it makes, if any
	// If set, called after success, before the connection is given back.
	answered func()
}

// ask has the server run one statement and calls scan for each row. After an error, unknown is
// whether the statement may have been carried out. It tries again where it certainly wasn't and the
// reason has gone: on another connection after one that is read-only, unprepared behind a pooler,
// and after a serialization failure.
func (s *Store) ask(ctx context.Context, q question) (unknown bool, err error) {
	// Connections that may be older than the server's role.
	stale := int(s.pool.Stat().IdleConns()) + 1
	for try := 0; ; try++ {
		if err := s.ready(ctx); err != nil {
			return false, err
		}
		conn, release, err := s.connection(ctx, q.change)
		if err != nil {
			return false, s.failed(ctx, err)
		}
		link := linkOf(conn)
		mode := s.mode()
		heard := warningsOf(conn)
		if heard == nil {
			s.watch.deaf.Store(true)
		}
		heard.forget()
		err = link.send(ctx, mode, q)
		switch {
		case err != nil:
		case heard.unreplicated():
			err = errUnreplicated
		case ctx.Err() != nil:
			// The client may have asked the server to cancel a wait for a standby, which ends in
			// success.
			err = context.Cause(ctx)
		}
		if err == nil {
			s.answered(ctx, link, mode, q)
		}
		again := false
		switch code := sqlstate(err); {
		case err == nil:
		case code == codeReadOnly || errors.Is(err, errReadOnly):
			discard(conn)
			again = try < stale
		case code == codeNoStatement, code == codeStatementThere, code == codeCachedPlan && strings.Contains(err.Error(), "cached plan"):
			s.plain.Store(true)
			again = mode == pgx.QueryExecModeCacheStatement
		case code == codeSerialization, code == codeDeadlock:
			again = try < maxRetries
		}
		release()
		if err == nil || !again {
			return !refused(err), s.failed(ctx, err)
		}
	}
}

// answered is called when a statement has succeeded, before its connection is given back.
func (s *Store) answered(ctx context.Context, l *link, mode pgx.QueryExecMode, q question) {
	if q.answered != nil {
		q.answered()
	}
	if code := sqlstate(l.prepare(ctx, mode, q)); code == codeStatementThere {
		// Else the connection is broken, or it can't be prepared: then the statement is sent as it
		// is.
		s.plain.Store(true)
	}
}

// connection returns one for a statement, and what gives it back: an idle one of the pool, or the
// one that listens, or else a new one of the pool. While a process does nothing but wait, the one
// that listens comes first: so it has one connection, and again after a moment in which it needed
// two, since the pool closes what isn't used. The one with the crowd's lock writes nothing: others
// in the crowd rely on that lock, and a session doesn't meet its own. When another copy of the
// change was done before there was one, the error is the conflict that this one would meet: a late
// copy must not take the connection that the next change needs.
func (s *Store) connection(ctx context.Context, c change) (conn *pgx.Conn, release func(), err error) {
	landing := context.Background()
	idle := s.pool.Stat().IdleConns() > 0
	if !idle || s.onlyWaits() {
		if !s.crowded.Load() {
			if conn, release = s.line.borrow(ctx); conn != nil {
				return conn, release, nil
			}
		}
	}
	if !idle {
		landing = s.doubts.Landing(c.key, c.nonce)
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(landing, cancel)()
	}
	pooled, err := s.pool.Acquire(ctx)
	if landing.Err() != nil && err == nil {
		pooled.Release()
	}
	if err = cmp.Or(context.Cause(landing), err); err != nil {
		return nil, nil, err
	}
	return pooled.Conn(), pooled.Release, nil
}

// lull is after how long without a change a handle does nothing but wait. A holder whose TTL is
// short renews more often.
const lull = 30 * time.Second

// onlyWaits reports whether the handle has changed nothing for a lull.
func (s *Store) onlyWaits() bool {
	last := clock.Instant(s.changed.Load())
	return last == 0 || clock.System().Now().Sub(last) > lull
}

// discard closes a connection, so that the pool makes a new one.
func discard(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is of no use either way
}

// refused reports whether the statement was certainly not carried out: it was never sent, or rolled
// back. A FATAL of a server that shuts down may come after the commit.
func refused(err error) bool {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.SeverityUnlocalized == "ERROR" && p.Code != codeCompletionUnknown && p.Code != codeResolutionUnknown
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, errReadOnly)
}

func sqlstate(err error) string {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// failed returns err for the caller: ErrClosed where that explains it, the cause of a context that
// ended, or what to do.
func (s *Store) failed(ctx context.Context, err error) error {
	select {
	case <-s.closed:
		if err != nil && sqlstate(err) == "" {
			return store.ErrClosed
		}
	default:
	}
	if err != nil && ctx.Err() != nil && sqlstate(err) == "" {
		return context.Cause(ctx)
	}
	return explain(err, s.opts.Table)
}
