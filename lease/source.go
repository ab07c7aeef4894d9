package lease

import (
	"context"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Source returns what a [fence.Online] guard asks: who holds each name, according to the store. Shares of locks it doesn't know:
// [github.com/leasehold/leasehold/lock.Source] does. It knows of no validity: a
// holder that has not renewed in time counts until somebody else has the name, or an operator has broken the hold.
//
// It reads durably, see [store.Confirm]: where a plain read isn't, each answer costs a write, and while the store can't make that
// there is none.
func Source(st store.Store) fence.Source { return source{store.Confirmed(st)} }

type source struct{ st store.Store }

// Current implements [fence.Source].
func (s source) Current(ctx context.Context, name string) (fence.Holding, error) {
	rec, err := store.Load(ctx, s.st, name)
	if err != nil {
		return fence.Holding{}, err
	}
	return CurrentOf(ctx, s.st, rec)
}

// CurrentOf is what [Source] says of the name whose record has just been read. It reads the session that keeps the name, if one does.
func CurrentOf(ctx context.Context, st store.Store, rec store.Record) (fence.Holding, error) {
	c := fence.Holding{Holder: rec.Owner, Token: rec.Token}
	switch {
	case rec.Intervention == store.InterventionBroken, rec.Intervention == store.InterventionHandedOver: // the one is over, the other not begun
		c.Holder = ""
	case rec.Session != "":
		session, err := store.Load(ctx, st, rec.Session)
		if err != nil {
			return fence.Holding{}, err
		}
		if session.Owner != rec.Owner || session.Intervention == store.InterventionBroken {
			c.Holder = "" // it was closed or broken, and all that it kept
		}
	}
	return c, nil
}
