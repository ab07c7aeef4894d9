package drive

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Named returns the driver of a term that a holder elsewhere has, of which a server knows the owner
// and the token; see [protocol.Named]. ttl is 0 for that which the term has. A request of it that
// has no answer by attempt is sent once more, and given up after three times that.
func Named(key, owner string, token fence.Token, ttl, attempt time.Duration, past Recollection) Driver {
	t := protocol.Timing{TTL: ttl, Margin: protocol.DefaultMargin, Drift: protocol.DefaultDrift, Attempt: attempt}
	return Driver{Hold: protocol.Named(key, owner, token, t, past.Seen, past.latest)}
}

// Look takes over what h has seen.
func (r *Recollection) Look(h *protocol.Hold) {
	r.Seen, r.session = h.Seen(), h.SeenSession()
	r.latest = r.latest.Note(r.Seen.Rec)
}

// Granted takes note of a term that began here: what was known of later versions is of a store that
// has forgotten them.
func (r *Recollection) Granted(rec store.Record) { r.latest = protocol.LatestOf(rec) }

// Orphan remembers the nonces under which h may yet be found in the record. Those that h has begun
// with are known: they must not take the place of what another hold has left behind since.
func (r *Recollection) Orphan(h *protocol.Hold) {
	mine := slices.Clone(r.mine)
	for _, nonce := range h.Orphans() {
		if !slices.Contains(mine, nonce) {
			mine = append(mine, nonce)
		}
	}
	r.mine = mine[max(0, len(mine)-maxOrphans):]
}

// Carry drives a hold that Named made until it is renewed, lost, or let go, or nothing can be done
// now. It blocks.
func (r *Runner) Carry(ctx context.Context, d *Driver) error {
	h := &d.Hold
	for env := r.Env(); ; {
		act := d.Next(env, true)
		switch {
		case h.Renewed(), h.Phase == protocol.Lost:
			return nil
		case h.Phase == protocol.Ended:
			return h.Err
		case h.Err != nil && !h.InDoubt():
			return h.Err // nothing was done: who asks may ask again
		case ctx.Err() != nil && h.InDoubt():
			return driver.Unknown(h.Key, context.Cause(ctx))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		env = r.Do(ctx, d, nil, act)
	}
}
