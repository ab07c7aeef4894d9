package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/enginekit/batch"
	"github.com/leasehold/leasehold/internal/enginekit/notify"
	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of [Open]. The zero value is ready for use.
type Options struct {
	Table string // NAME or SCHEMA.NAME; DefaultTable when ""

	// ClockStep enables Age, when above 0. It is an upper bound on how far the wall clock of the
	// server is ever set, and on how far those of the primary and of a standby that replaces it
	// differ. Ages are too small by that bound. One that would be below 0 is 0.
	ClockStep time.Duration

	// NoNotify leaves NOTIFY and advisory locks out of the writes of this handle, and LISTEN: its
	// Waits poll. Waits of other handles learn of its writes by polling, too, within 10 s.
	NoNotify bool
}

// Store is a store in a table. It implements [store.Store], [store.Waiter], [store.Describer] and
// [driver.Inspector].
type Store struct {
	pool   *pgxpool.Pool
	opts   Options
	sql    statements
	topics topics
	seen   look // at Open
	doubts outcome.Writes
	watch  watch // over what the fencing depends on

	// Statements aren't prepared: a pooler may give the next one to another server process.
	plain    atomic.Bool
	writes   *batch.Groups[*write]
	confirms *batch.Groups[*confirmation]
	waiters  *notify.Waiters
	line     line
	crowded  atomic.Bool  // that one may hold the crowd's lock
	changed  atomic.Int64 // when a change was last sent, a [clock.Instant]; 0 before the first
	closing  sync.Once
	closed   chan struct{}
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Open returns a store in an existing table, see [Create]. It checks that the table is one of
// Leasehold's, an ordinary one, and on the primary. The pool stays the caller's: Close leaves it
// open. Open blocks until the server has answered or ctx is done.
func Open(ctx context.Context, pool *pgxpool.Pool, opts Options) (*Store, error) {
	t, err := ident(opts.Table)
	if err != nil {
		return nil, err
	}
	opts.Table = orDefault(opts.Table)
	if opts.ClockStep < 0 {
		return nil, fmt.Errorf("ClockStep %v: want a bound above 0, or 0 for no Age", opts.ClockStep)
	}
	s := &Store{pool: pool, opts: opts, sql: newStatements(t), closed: make(chan struct{})}
	s.waiters, s.writes, s.confirms = notify.New(source{s}), batch.New(1, s.together), batch.New(1, s.confirmTogether)
	if s.seen, err = s.look(ctx); err != nil {
		return nil, fmt.Errorf("open the table %s: %w", opts.Table, err)
	}
	if err := s.seen.refuse(opts.Table); err != nil {
		return nil, err
	}
	s.plain.Store(s.seen.pooled)
	s.watch.saw(s.seen.replication)
	s.topics = newTopics(s.seen.schema, s.seen.table)
	if opts.NoNotify {
		s.topics.channel = ""
	}
	return s, nil
}

// Properties implements [store.Describer]. The store looks at what they depend on every 10 s while
// the handle writes or Properties is called. A call that starts such a look doesn't wait for it;
// later calls have its result.
func (s *Store) Properties() store.Properties {
	s.lookAgain()
	p := store.Properties{
		Engine:       "postgres",
		Consistency:  "linearizable: one statement each on the primary, synced before it is acknowledged",
		Fencing:      store.FencingLinearizable,
		Read:         store.ReadLeader,
		Settle:       store.SettledByWrite,
		Push:         s.pushes(),
		Age:          s.opts.ClockStep > 0,
		CheapRefusal: true,
		Guarantee:    "over crashes of the server, and failovers to standbys that are synchronous",
	}
	switch r := s.watch.last(); {
	case r.async():
		p.Fencing = store.FencingPerPrimary
		p.Guarantee = "over crashes of the server; a failover to its standby, which is asynchronous, may lose the last writes"
	case r.waits() && s.watch.deaf.Load():
		p.Fencing = store.FencingPerPrimary
		p.Guarantee = "over crashes of the server; a write whose wait for the standby the server cancelled looks acknowledged, see HearWarnings"
	}
	return p
}

func (s *Store) pushes() bool { return s.topics.channel != "" && !s.seen.pooled }

// Close implements [store.Store]. It leaves the pool open.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.closed) })
	s.waiters.Close()
	s.writes.Close()
	s.confirms.Close()
	s.watch.end()
	return nil
}

// ready returns why no operation may begin.
func (s *Store) ready(ctx context.Context) error { return watcher.Ready(ctx, s.closed) }

// mode is how statements are sent: in one round trip, and prepared only where a connection leads to
// one server process.
func (s *Store) mode() pgx.QueryExecMode {
	switch given := s.pool.Config().ConnConfig.DefaultQueryExecMode; {
	case given == pgx.QueryExecModeSimpleProtocol, given == pgx.QueryExecModeCacheStatement && !s.plain.Load():
		return given
	}
	return pgx.QueryExecModeExec
}

// ShouldPing is for [pgxpool.Config]. It detects a broken connection without a round trip, so that
// each operation takes only one. Where a network drops connections in silence, an operation on such
// a connection has to time out instead, as during an outage. Renewals are retried.
func ShouldPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // Ping, its successor, is the round trip that this spares
}

var errReadOnly = errors.New("the session is read-only")
