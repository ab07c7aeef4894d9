package lock

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// watch is what one waiter has observed of the sessions of those before it.
type watch struct {
	m    *lease.Manager
	seen map[string]rules.Seen // by session key
}

// gone looks at the sessions of entries, and returns the ids of those whose session is over. A session that has not been
// renewed for its TTL is closed first: from then on its process can't rely on it, nor revive it. It returns when the next
// of them may have died.
func (w *watch) gone(ctx context.Context, entries []entry) (ids map[string]bool, next clock.Instant, err error) {
	ids, next = map[string]bool{}, clock.Never
	over := map[string]bool{}
	for _, e := range entries {
		if _, known := over[e.Session]; !known {
			due, ended, err := w.look(ctx, e.Session)
			if err != nil {
				return nil, 0, err
			}
			over[e.Session] = ended
			if !ended {
				next = min(next, due)
			}
		}
		if over[e.Session] {
			ids[e.ID] = true
		}
	}
	return ids, next, nil
}

// look reads a session's record, and says whether the session is over, or else until when it isn't at the least.
func (w *watch) look(ctx context.Context, key string) (due clock.Instant, over bool, err error) {
	rec, err := store.Load(ctx, w.m.Store(), key)
	if err != nil {
		return 0, false, err
	}
	now := w.m.Clock().Now()
	seen := w.seen[key].Note(rec, now)
	w.seen[key] = seen
	switch {
	case rec.Owner == "":
		return 0, true, nil
	case now < seen.Dead():
		return seen.Dead(), false, nil
	}
	_, err = w.m.Store().Put(ctx, rules.Freed(rec, rules.WhyExpired, w.m.Clock().Wall(), rand.Text()))
	var conflict *store.ConflictError
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
		return 0, true, nil
	case errors.As(err, &conflict): // it was renewed, or closed by another
		w.seen[key] = seen.Note(conflict.Current, w.m.Clock().Now())
		return w.seen[key].Dead(), conflict.Current.Owner == "", nil
	}
	return 0, false, err // nothing is known: look again
}
