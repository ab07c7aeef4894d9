package election

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Prune takes those candidates off the list whose sessions are over; over says so of a session's key, and it has to be so for good.
// An election without candidates and pause, one that is over aside, is noted to be unused since now, the time of day, until somebody uses it again. It
// blocks until the store has answered or ctx is done. After an error that matches [store.ErrUnknownOutcome] it can be called again.
func Prune(ctx context.Context, st store.Store, name string, over func(session string) bool, now time.Time) error {
	return edit(ctx, st, name, func(k *control) (bool, error) {
		kept := slices.DeleteFunc(slices.Clone(k.Candidates), func(c Candidate) bool { return over(c.Session) })
		write := len(kept) < len(k.Candidates)
		k.Candidates = kept
		paused := slices.ContainsFunc(k.pauses(), func(p Pause) bool { return !p.Over(now) })
		if len(kept) == 0 && !paused && k.Unused.IsZero() {
			k.Unused, write = now.UTC(), true
		}
		return write, nil
	})
}
