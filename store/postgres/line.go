package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/clock"
)

// line is the connection that listens. It is lent for a statement at a time.
type line struct {
	mu        sync.Mutex
	up        bool               // a connection listens
	interrupt context.CancelFunc // ends its wait for a notification; nil while it doesn't wait
	loans     []*loan            // that were asked for, in their order
}

// loan is one use of the connection.
type loan struct {
	given chan *pgx.Conn // of capacity 1; nil when the connection is dead
	back  chan struct{}  // closed when it was used, or is not wanted any more
}

// turn is how long another statement is waited for that has the connection.
const turn = 20 * time.Millisecond

// borrow returns the connection, and what gives it back; nil when none listens, or it is in use.
func (l *line) borrow(ctx context.Context) (*pgx.Conn, func()) {
	mine := &loan{given: make(chan *pgx.Conn, 1), back: make(chan struct{})}
	l.mu.Lock()
	if !l.up || len(l.loans) > 0 {
		l.mu.Unlock()
		return nil, nil
	}
	l.loans = append(l.loans, mine)
	if l.interrupt != nil {
		l.interrupt()
	}
	l.mu.Unlock()
	release := func() { close(mine.back) }
	late := clock.NewTimer(clock.System(), turn)
	defer late.Stop()
	select {
	case conn := <-mine.given:
		if conn != nil {
			return conn, release
		}
	case <-ctx.Done():
	case <-late.C:
	}
	release()
	return nil, nil
}

// serve tells of the notifications that come on conn, and lends it. It blocks until the connection
// is dead or ctx is done, and a statement that it is lent for has ended; or until closed, which
// ends that statement.
func (l *line) serve(ctx context.Context, conn *pgx.Conn, closed <-chan struct{}, changed func(key string)) error {
	l.mu.Lock()
	l.up = true
	l.mu.Unlock()
	defer l.lend(nil, true, closed)
	for {
		waitCtx, cancel := context.WithTimeout(ctx, quiet)
		l.await(cancel)
		n, err := conn.WaitForNotification(waitCtx)
		l.await(nil)
		cancel()
		lent := l.lend(conn, false, closed)
		switch {
		case err == nil:
			changed(n.Payload)
		case ctx.Err() != nil || conn.IsClosed():
			return err
		case lent:
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		default:
			if err := ping(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// await says what interrupts the wait for a notification that begins. One that was asked for
// meanwhile interrupts it at once.
func (l *line) await(interrupt context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interrupt = interrupt; interrupt != nil && len(l.loans) > 0 {
		interrupt()
	}
}

// lend gives the connection, in turn, to all who asked for it, and waits until it is back. It
// reports whether there was anybody. With last it is the end, and nobody gets it.
func (l *line) lend(conn *pgx.Conn, last bool, closed <-chan struct{}) (lent bool) {
	for {
		l.mu.Lock()
		if last {
			l.up = false
		}
		if len(l.loans) == 0 {
			l.mu.Unlock()
			return lent
		}
		to := l.loans[0]
		l.loans = l.loans[1:]
		l.mu.Unlock()
		lent = true
		if last || conn.IsClosed() {
			to.given <- nil
			continue
		}
		to.given <- conn
		select {
		case <-to.back:
		case <-closed:
			_ = conn.PgConn().Conn().SetDeadline(time.Unix(1, 0)) // the statement fails
			<-to.back
		}
	}
}

// ping finds out whether a connection on which nothing came for a while is alive.
func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("the connection that listens is dead: %w", err)
	}
	return nil
}
