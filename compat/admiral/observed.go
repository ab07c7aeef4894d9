package admiral

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// observed is a store that tells a run what every answer says of its lease, and shows an operator's
// hold as one that does not expire.
type observed struct {
	store.Store
	r    *run
	seen *lease.Observer // of the lease's row
}

// Get implements [store.Store].
func (o *observed) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := o.Store.Get(ctx, key)
	return o.answer(ctx, key, rec, err)
}

// Put implements [store.Store].
func (o *observed) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	stored, err := o.Store.Put(ctx, rec)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		current, _ := o.answer(ctx, rec.Key, conflict.Current, nil)
		return stored, &store.ConflictError{Current: current}
	}
	return o.answer(ctx, rec.Key, stored, err)
}

// Wait implements [store.Waiter], whether the inner store pushes or has to be polled.
func (o *observed) Wait(ctx context.Context, key, version string) (store.Record, error) {
	rec, err := store.Wait(ctx, o.Store, key, version)
	if err != nil && ctx.Err() != nil {
		return rec, err // nothing has changed
	}
	return o.answer(ctx, key, rec, err)
}

func (o *observed) answer(ctx context.Context, key string, rec store.Record, err error) (store.Record, error) {
	if key != o.r.c.cfg.LeaseName {
		return rec, err
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		o.r.saw(o.seen.Saw(store.Record{Key: key}))
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded) && err != nil:
		o.r.s.trouble(fmt.Errorf("no answer in time: %w", err))
	case ctx.Err() != nil && err != nil: // nobody wants to know any more
	case err != nil:
		o.r.s.trouble(err)
	default:
		if rec.Owner == SkipOwner {
			rec.TTL, rec.Age = store.MaxTTL, 0
		}
		o.r.saw(o.seen.Saw(rec))
	}
	return rec, err
}

// saw publishes what a row says of who may write, while this instance may not. mine is the reason
// for that if the row is its own.
func (s *State) saw(row lease.Status, me, mine string) {
	rec := row.Record
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term != nil {
		return
	}
	s.expires = s.clk.Now().Add(row.ExpiresIn)
	if rec.Owner == "" || rec.Owner == SkipOwner {
		s.expires = clock.NoDeadline
	}
	s.publish(func(st *Status) {
		st.ReadOnly, st.Initialized, st.Err = true, true, nil
		st.Owner, st.Token, st.Since = rec.Owner, rec.Token, rec.Acquired
		switch rec.Owner {
		case "":
			st.Reason = "nobody holds the lease"
		case SkipOwner:
			st.Reason = "an operator holds every instance passive"
			if rec.Note != "" {
				st.Reason += ": " + rec.Note
			}
		case me:
			st.Reason = mine
		default:
			st.Reason = "another instance holds the lease"
		}
	})
}

// trouble publishes that the store can't be asked. Of an active instance it says nothing: the
// events of its lease do.
func (s *State) trouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term != nil {
		return
	}
	s.publish(func(st *Status) {
		st.ReadOnly, st.Initialized, st.Reason, st.Err = true, false, "the store can't be asked: "+err.Error(), err
	})
}
