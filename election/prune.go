package election

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Prune removes the candidates whose sessions are over from the list. over reports whether the
// session of a key is over, which has to be final. An election without candidates and without a
// pause that still lasts is noted as unused since now, the time of day. The note stays until the
// election is used again.
//
// Prune blocks until the store has answered or ctx is done. After an error that matches
// [store.ErrUnknownOutcome] it can be called again.
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
