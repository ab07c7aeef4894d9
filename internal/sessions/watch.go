// Package sessions observes the sessions of others, for primitives whose records list several of them.
package sessions

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Watch is what one process has observed of sessions. It is not safe for concurrent use.
type Watch struct {
	m    *lease.Manager
	seen map[string]rules.Seen // by session key
}

// NewWatch returns one that has seen nothing, on the store and by the clock of m.
func NewWatch(m *lease.Manager) *Watch { return &Watch{m: m, seen: map[string]rules.Seen{}} }

// Over looks at sessions, and returns those that are over. One that has not been renewed for its TTL is closed first: from then on
// its process can't rely on it, nor revive it. next is when another of them may have died. It blocks for a read of each, and a
// write of each that died.
func (w *Watch) Over(ctx context.Context, keys []string) (over map[string]bool, next clock.Instant, err error) {
	over, next = map[string]bool{}, clock.Never
	for _, key := range keys {
		if _, known := over[key]; known {
			continue
		}
		due, ended, err := w.look(ctx, key)
		if err != nil {
			return nil, 0, err
		}
		over[key] = ended
		if !ended {
			next = min(next, due)
		}
	}
	for key := range w.seen { // what is not asked for any more
		if _, wanted := over[key]; !wanted {
			delete(w.seen, key)
		}
	}
	return over, next, nil
}

// look reads a session's record, and says whether the session is over, or else until when it isn't at the least.
func (w *Watch) look(ctx context.Context, key string) (due clock.Instant, over bool, err error) {
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
