package postgres

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errUnreplicated says that the server stopped to wait for its standbys.
var errUnreplicated = errors.New("committed on the primary, perhaps on no standby: the server's wait for its synchronous standbys was cancelled (by statement_timeout or pg_cancel_backend?)")

// warnings are those that a connection brought.
type warnings struct{ cancelled atomic.Bool }

// warningsKey is where a connection has its warnings.
const warningsKey = "leasehold.warnings"

// HearWarnings makes the connections of a pool report to the engine when the server gives up
// waiting for a synchronous standby: the server then reports success, with a warning. Call it
// before the pool is made. Without it, and with a synchronous standby, Properties say fencing per
// primary. Existing handlers of the configuration are called as before.
func HearWarnings(config *pgxpool.Config) {
	conn := &config.ConnConfig.Config
	connected, noticed := conn.AfterConnect, conn.OnNotice
	conn.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		c.CustomData()[warningsKey] = &warnings{}
		if connected == nil {
			return nil
		}
		return connected(ctx, c)
	}
	conn.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		// The message is in the server's language, the routine never is.
		if w, ok := c.CustomData()[warningsKey].(*warnings); ok && n.Routine == "SyncRepWaitForLSN" {
			w.cancelled.Store(true)
		}
		if noticed != nil {
			noticed(c, n)
		}
	}
}

// warningsOf returns nil for a connection that HearWarnings knows nothing of.
func warningsOf(conn *pgx.Conn) *warnings {
	w, _ := conn.PgConn().CustomData()[warningsKey].(*warnings)
	return w
}

func (w *warnings) forget() {
	if w != nil {
		w.cancelled.Store(false)
	}
}

func (w *warnings) unreplicated() bool { return w != nil && w.cancelled.Load() }
