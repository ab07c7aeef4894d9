package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/internal/enginekit/notify"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. A read that fails for some 5 s ends it.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	rec, err := s.waiters.Wait(ctx, notify.Want{Key: key, Version: version}, func(ctx context.Context) (store.Record, error) {
		return s.load(ctx, s.sql.get, key)
	})
	if err != nil {
		return rec, err
	}
	return s.sure(ctx, rec)
}

// source is what the waiters read from and listen to.
type source struct{ s *Store }

// Read implements [notify.Source], in one statement.
func (src source) Read(ctx context.Context, wants []notify.Want) ([]notify.Result, error) {
	keys, versions := make([]string, len(wants)), make([]string, len(wants))
	for i, w := range wants {
		keys[i], versions[i] = w.Key, w.Version
	}
	results := make([]notify.Result, len(wants))
	_, err := src.s.ask(ctx, question{sql: src.s.sql.changed, args: []any{keys, versions}, scan: func(rows pgx.Rows) error {
		var readOnly bool
		var n *int64 // from 1; NULL when nothing changed
		var r row
		if err := rows.Scan(&readOnly, &n, &r.version, &r.record, &r.age); err != nil {
			return err
		}
		if n != nil {
			got := &results[*n-1]
			got.Changed, got.Rec = true, store.Record{Key: keys[*n-1]}
			if r.version != nil {
				got.Rec, got.Err = src.s.record(keys[*n-1], r)
			}
		}
		return writable(readOnly)
	}})
	return results, err
}

const (
	listenLimit = 5 * time.Second  // that setting up a subscription may take
	quiet       = 10 * time.Second // without a notification, after which the connection is tried
)

// Listen implements [notify.Source], on a connection of its own.
func (src source) Listen(ctx context.Context, ear notify.Ear) error {
	if src.s.topics.channel == "" {
		return notify.ErrDeaf
	}
	conn, err := src.subscribe(ctx)
	if conn != nil {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = conn.Close(ctx) // nothing of it is needed any more
			src.s.crowded.Store(false)
		}()
	}
	if err != nil {
		return err
	}
	follower := newFollower(src.s, ear)
	follower.sort(ear.Next())
	if _, err := follower.attend(ctx, conn); err != nil { // before anybody borrows the connection
		return err
	}
	ear.Up()
	ctx, cancel := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer func() {
		cancel(nil)
		following.Wait()
		follower.end(context.WithoutCancel(ctx), conn)
	}()
	following.Go(func() { cancel(follower.run(ctx)) })
	return src.s.line.serve(ctx, conn, src.s.closed, follower.told)
}

// subscribe returns the connection also after an error, if there is one.
func (src source) subscribe(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	pooled, err := src.s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	conn := pooled.Hijack()
	var standby bool
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT "+readOnly+", pg_backend_pid()", pgx.QueryExecModeExec).Scan(&standby, &pid)
	switch {
	case err != nil:
		return conn, err
	case standby:
		return conn, errReadOnly
	case pid != conn.PgConn().PID():
		return conn, notify.ErrDeaf
	}
	_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{src.s.topics.channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol)
	return conn, err
}
