package lock

import (
	"context"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Source returns what a [fence.Online] guard asks. It answers for leases as [lease.Source] does,
// and also for shares of locks. Those of a read/write lock have its name, and those of a semaphore
// NAME#SLOT, as in [Hold.Sequencer].
//
// A share counts until it is released, or its session is closed or broken. Source doesn't know
// whether the holder has renewed in time. A question about a read/write lock takes one read for
// each of its holders. A name whose record doesn't say its kind takes one more. Source reads as
// durably as lease.Source.
func Source(st store.Store) fence.Source { return source{store.Confirmed(st)} }

type source struct{ st store.Store }

// Current implements [fence.Source].
func (s source) Current(ctx context.Context, name string) (fence.Holding, error) {
	if of, slot, ok := slotOf(name); ok {
		rec, state, err := s.state(ctx, of)
		if err != nil {
			return fence.Holding{}, err
		}
		if state.Kind == roster.Semaphore && rec.Owner == "" {
			return s.ofSlot(ctx, state, slot)
		}
	}
	rec, state, err := s.state(ctx, name)
	if err != nil {
		return fence.Holding{}, err
	}
	whole, err := lease.CurrentOf(ctx, s.st, rec)
	if err != nil || state.Kind != roster.RW {
		return whole, err
	}
	return s.ofShares(ctx, state, whole)
}

// slotOf takes apart the name of a semaphore's slot.
func slotOf(name string) (of string, slot int, ok bool) {
	i := strings.LastIndexByte(name, '#')
	if i <= 0 {
		return "", 0, false
	}
	slot, err := strconv.Atoi(name[i+1:])
	return name[:i], slot, err == nil && strconv.Itoa(slot) == name[i+1:]
}

// state reads a name's record, and the roster that is beside it where the record doesn't say what
// the name is.
func (s source) state(ctx context.Context, name string) (store.Record, roster.State, error) {
	rec, err := store.Load(ctx, s.st, name)
	if err != nil || rec.Kind != "" && !rec.Kind.Shared() {
		return rec, roster.State{}, err
	}
	state, err := roster.Beside(ctx, s.st, rec)
	return rec, state, err
}

func (s source) ofSlot(ctx context.Context, state roster.State, slot int) (fence.Holding, error) {
	for _, h := range state.Held {
		if h.Slot != slot {
			continue
		}
		live, err := s.live(ctx, h)
		if live || err != nil {
			return fence.Holding{Holder: h.Owner, Token: h.Token}, err
		}
	}
	return fence.Holding{Token: state.Token}, nil // no share that is granted later has a lower one
}

// ofShares joins the shares with whoever has the name as a whole, and had it before it was shared.
func (s source) ofShares(ctx context.Context, state roster.State, whole fence.Holding) (fence.Holding, error) {
	c := fence.Holding{Token: max(state.Token, whole.Token)}
	if whole.Holder != "" {
		c.Shares = append(c.Shares, fence.Share{Holder: whole.Holder, Token: whole.Token})
	}
	for _, h := range state.Held {
		live, err := s.live(ctx, h)
		if err != nil {
			return fence.Holding{}, err
		}
		if live {
			c.Shares = append(c.Shares, fence.Share{Holder: h.Owner, Token: h.Token})
		}
	}
	for _, share := range c.Shares {
		if share.Token == c.Token {
			c.Holder = share.Holder
		}
	}
	return c, nil
}

// live reports whether the session of a share has been neither closed nor broken.
func (s source) live(ctx context.Context, h roster.Share) (bool, error) {
	session, err := store.Load(ctx, s.st, h.Session)
	return session.Owner != "" && session.Intervention != store.InterventionBroken, err
}
