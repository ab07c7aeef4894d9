package lease

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
)

// EndTerm tells [Manager.Break] and [Manager.Free] which term to end, and what to write down about it.
type EndTerm struct {
	Token  fence.Token // of the term to end; another one is never touched
	By     string      // who ends it: user@host
	Reason string      // why

	// Grace is how long others leave the name to a holder that does not let go, from when they see the break. 0 means
	// the record's own TTL, which is safe: by then the holder has met the break, or its validity has ended. With less,
	// the old holder may still be working when the next one starts.
	Grace time.Duration
}

// Break ends a term against its holder's will, and returns the record as it is then. Its holder may be any: another process, as a
// rule. The holder can't renew any more; it meets the break at its next renewal, which is at most TTL/3 away, loses the lease at
// once and frees the name when its work has stopped. Others may take the name when that has happened, or after Grace. If the
// lease is kept by a session, the session is told first; the rest of its leases are not touched. The key of a session is a name,
// too: it ends with all that it keeps.
//
// The error is a *[fence.StaleError] when e.Token is not the current term; then nothing was changed. Break is tried again while
// the holder renews in between. It blocks until the store answered or ctx is done. After an error that matches
// [store.ErrUnknownOutcome] it can be called again.
func (m *Manager) Break(ctx context.Context, name string, e EndTerm) (store.Record, error) {
	return drive.Break(ctx, m.run.Store, name, drive.EndTerm(e))
}

// Free frees a name in its holder's stead, at once, and returns the record as it is then. It is for a holder that lets go
// by other means than its [Lease], a script that was given the token, say: the caller of Free vouches that the work has
// stopped. The rest is as with [Manager.Break].
func (m *Manager) Free(ctx context.Context, name string, e EndTerm) (store.Record, error) {
	return drive.Free(ctx, m.run.Store, m.clk, name, drive.EndTerm(e))
}
