package sweep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/store"
)

// beside is what a roster, or the record of an election, says, as far as it matters here.
type beside struct {
	rec      store.Record
	sessions []string  // of those on it
	unused   time.Time // as noted; zero if it isn't
	paused   bool      // so it says something even if nobody is on it
}

func readBeside(rec store.Record, now time.Time) (b beside, err error) {
	b.rec = rec
	if strings.HasPrefix(rec.Key, ballot.Prefix) {
		state, err := ballot.StateOf(rec, now)
		for _, c := range state.Candidates {
			b.sessions = append(b.sessions, c.Session)
		}
		b.unused = state.Unused
		b.paused = state.Pause != nil
		return b, err
	}
	state, err := roster.StateOf(rec)
	for _, list := range [][]roster.Share{state.Held, state.Waiting} {
		for _, share := range list {
			b.sessions = append(b.sessions, share.Session)
		}
	}
	b.unused = state.Unused
	return b, err
}

// sessionsOn returns the keys of the sessions that such a record names.
func (s *sweeper) sessionsOn(ctx context.Context, key string) ([]string, error) {
	rec, err := store.Load(ctx, s.st, key)
	if err != nil {
		return nil, err
	}
	b, err := readBeside(rec, s.wall)
	return b.sessions, err
}

// tidy takes those who are gone off rosters and lists of candidates, and deletes what nobody has
// used for long enough.
func (s *sweeper) tidy(ctx context.Context) {
	for _, key := range s.beside {
		if ctx.Err() != nil {
			return
		}
		rec, err := store.Load(ctx, s.st, key)
		if err != nil {
			s.failed(ctx, err)
			continue
		}
		b, err := readBeside(rec, s.wall)
		if err != nil || rec.Version == "" {
			continue // told before, or gone
		}
		if !s.tidyOne(ctx, b) {
			for _, session := range b.sessions {
				s.named[session] = true
			}
		}
	}
}

// tidyOne reports whether none of the sessions that are over is named by it any more.
func (s *sweeper) tidyOne(ctx context.Context, b beside) bool {
	gone := 0
	for _, session := range b.sessions {
		if s.over(session) {
			gone++
		}
	}
	empty := gone == len(b.sessions) && !b.paused
	switch {
	case empty && !b.unused.IsZero() && b.unused.Before(s.cutoff()) && s.mayForget(b.rec):
		s.delete(ctx, stale{b.rec.Key, b.rec.Version, "unused since " + b.unused.UTC().Format(time.DateOnly)})
		return true
	case gone > 0:
		return s.prune(ctx, b.rec.Key, fmt.Sprintf("%d of %d on it are gone", gone, len(b.sessions)))
	case empty && b.unused.IsZero():
		return s.prune(ctx, b.rec.Key, "nobody is on it: unused from now on")
	}
	return true
}

func (s *sweeper) prune(ctx context.Context, key, why string) bool {
	if !s.opts.DryRun {
		prune, name := roster.Prune, key
		if strings.HasPrefix(key, ballot.Prefix) {
			prune, name = ballot.Prune, strings.TrimPrefix(key, ballot.Prefix)
		}
		if !s.did(ctx, key, prune(ctx, s.st, name, s.over, s.wall)) {
			return false
		}
	}
	s.tell(key, Pruned, why)
	return true
}
