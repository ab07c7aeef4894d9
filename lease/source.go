package lease

import (
	"context"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Source returns what a [fence.Online] guard asks: who holds each name, according to the store. It
// doesn't know the shares of locks; [github.com/leasehold/leasehold/lock.Source] does. Source knows
// of no validity. A holder that has not renewed in time counts until another holder has the name,
// or an operator has broken the hold.
//
// Source reads durably, see [store.Confirm]. Where a plain read isn't durable, each answer costs a
// write. While the store can't make that write, there is no answer.
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

// CurrentOf returns what [Source] says of the name whose record has just been read. If a session
// keeps the name, CurrentOf reads the session.
func CurrentOf(ctx context.Context, st store.Store, rec store.Record) (fence.Holding, error) {
	c := fence.Holding{Holder: rec.Owner, Token: rec.Token}
	switch {
	case rec.Intervention == store.InterventionBroken, rec.Intervention == store.InterventionHandedOver:
		// The one is over, the other not begun.
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
