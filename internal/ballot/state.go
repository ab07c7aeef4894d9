package ballot

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// State is what the record of an election says at a time of day.
type State struct {
	// The one that ends last; nil unless it is paused: one that is over is none.
	Pause      *Pause
	Pauses     []Pause     // all of them, in the order in which they were set
	Candidates []Candidate // in the order in which they came; some may have died since
	// Since when there is none, and no pause, by the wall clock of the [Prune] that found so; else
	// zero.
	Unused time.Time
}

// StateOf returns what the record of an election says at now, the time of day. A record that isn't
// stored gives an empty state. The error matches [store.ErrCorrupt] when the record can't be read.
func StateOf(rec store.Record, now time.Time) (State, error) {
	b, err := Parse(rec)
	pauses := slices.DeleteFunc(b.AllPauses(), func(p Pause) bool { return p.Over(now) })
	return State{Pause: lastToEnd(pauses), Pauses: pauses, Candidates: b.Candidates, Unused: b.Unused}, err
}

// Prune removes the candidates whose sessions are over from the list. over reports whether the
// session of a key is over, which has to be final. An election without candidates and without a
// pause that still lasts is noted as unused since now, the time of day. The note stays until the
// election is used again.
//
// Prune blocks until the store has answered or ctx is done. After an error that matches
// [store.ErrUnknownOutcome] it can be called again.
func Prune(ctx context.Context, st store.Store, name string, over func(session string) bool, now time.Time) error {
	return edit(ctx, st, name, func(b *Ballot) (bool, error) {
		kept := slices.DeleteFunc(slices.Clone(b.Candidates), func(c Candidate) bool { return over(c.Session) })
		write := len(kept) < len(b.Candidates)
		b.Candidates = kept
		paused := slices.ContainsFunc(b.AllPauses(), func(p Pause) bool { return !p.Over(now) })
		if len(kept) == 0 && !paused && b.Unused.IsZero() {
			b.Unused, write = now.UTC(), true
		}
		return write, nil
	})
}
