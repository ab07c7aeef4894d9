package lease

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
)

// EndTerm tells [Manager.Break] and [Manager.Free] which term to end, and what to write down about
// the end.
type EndTerm struct {
	Token  fence.Token // of the term to end; another term is never touched
	By     string      // who ends it: user@host
	Reason string      // why

	// Grace is how long others leave the name to a holder that does not free it, from when they see
	// the break. 0 means the record's own TTL, which is safe. By then the holder has met the break,
	// or its validity has ended. With less, the old holder may still be working when the next one
	// starts.
	Grace time.Duration
}

// Break ends a term against its holder's will, and returns the record as it is then. The holder may
// be any process. The holder can't renew any more. It meets the break at its next renewal, which is
// at most TTL/3 away. It then loses the lease at once, and frees the name when its work has
// stopped. Others may take the name when the holder has freed it, or after Grace.
//
// If a session keeps the lease, Break tells the session first. The session's other leases are not
// touched. The key of a session is a name, too. Breaking that name ends the session with all its
// leases.
//
// Break returns a *[fence.StaleError] if e.Token is not the current term; then nothing was changed.
// Break retries while the holder renews in between. It blocks until the store has answered or ctx
// is done. After an unknown outcome, an error that matches [store.ErrUnknownOutcome], the caller
// can call Break again.
func (m *Manager) Break(ctx context.Context, name string, e EndTerm) (store.Record, error) {
	return drive.Break(ctx, m.run.Store, name, drive.EndTerm(e))
}

// Free frees a name in its holder's stead, at once, and returns the record as it is then. It is for
// a holder that releases by other means than its [Lease]: a script that was given the token, say.
// The caller of Free vouches that the work has stopped. The rest is as with [Manager.Break].
func (m *Manager) Free(ctx context.Context, name string, e EndTerm) (store.Record, error) {
	return drive.Free(ctx, m.run.Store, m.clk, name, drive.EndTerm(e))
}
