package sweep

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// sight is what was seen of a session, or of a name that keeps itself.
type sight struct {
	protocol.Seen
	listed bool // it is a session that may be deleted
	over   bool // it is a session that is closed, or would be
}

// meet notes that rec, which has just been read, is there.
func (s *sweeper) meet(rec store.Record) *sight {
	v := &sight{over: rec.Owner == ""}
	v.Seen = v.Note(small(rec), s.clk.Now())
	s.sights[rec.Key] = v
	return v
}

// small is what has to be known of a record to see it die.
func small(rec store.Record) store.Record {
	return store.Record{
		Key: rec.Key, Owner: rec.Owner, Token: rec.Token, TTL: rec.TTL, Nonce: rec.Nonce, Version: rec.Version, Age: rec.Age,
	}
}

// meetSessions looks at the sessions that were named and not listed. They are read after what names
// them, so one that isn't there any more is over for good.
func (s *sweeper) meetSessions(ctx context.Context) {
	keys := slices.Collect(maps.Keys(s.keeps))
	for _, key := range s.beside {
		named, err := s.sessionsOn(ctx, key)
		if err != nil {
			s.failed(ctx, err)
		}
		keys = append(keys, named...)
	}
	for _, key := range keys {
		if s.sights[key] != nil || ctx.Err() != nil {
			continue
		}
		rec, err := store.Load(ctx, s.st, key)
		if err != nil {
			s.failed(ctx, err)
			continue
		}
		s.meet(rec)
	}
}

// watch waits until it is known who is gone, and ends what they held.
func (s *sweeper) watch(ctx context.Context) {
	var held []*sight
	for _, v := range s.sights {
		if !v.over {
			held = append(held, v)
		}
	}
	slices.SortFunc(held, func(a, b *sight) int { return cmp.Compare(a.Dead(), b.Dead()) })
	for i, v := range held {
		due := v.Dead()
		if due > s.began.Add(s.opts.Observe) {
			s.report.Unsettled += len(held) - i
			return
		}
		if clock.Sleep(ctx, s.clk, max(due.Sub(s.clk.Now()), 0)) != nil {
			return
		}
		rec, err := store.Load(ctx, s.st, v.Rec.Key)
		if err != nil {
			s.failed(ctx, err)
			continue
		}
		v.Seen = v.Note(small(rec), s.clk.Now())
		if protocol.Judge(v.Seen, protocol.Seen{}, "", nil, s.clk.Now()).Standing == protocol.Dead {
			s.bury(ctx, v, rec)
		}
		v.over = v.over || rec.Owner == ""
	}
}

// bury ends what one who is gone held.
func (s *sweeper) bury(ctx context.Context, v *sight, rec store.Record) {
	freed, done := s.free(ctx, rec, protocol.WhyExpired)
	if !done {
		return
	}
	why := "no sign of life for " + rec.TTL.Round(time.Millisecond).String()
	if keyspace.OwnerOf(rec.Key) == "" {
		s.tell(rec.Key, Freed, why)
		return
	}
	v.over, v.Rec.Version = true, freed.Version
	s.tell(rec.Key, Closed, why)
}

// over reports whether the session of that key is over, for good.
func (s *sweeper) over(key string) bool {
	v := s.sights[key]
	return v != nil && v.over
}

// vacate frees what sessions keep that are over.
func (s *sweeper) vacate(ctx context.Context) {
	for _, session := range slices.Sorted(maps.Keys(s.keeps)) {
		for _, name := range s.keeps[session] {
			if ctx.Err() != nil {
				return
			}
			if !s.over(session) || !s.vacateName(ctx, name, session) {
				s.named[session] = true
			}
		}
	}
}

func (s *sweeper) vacateName(ctx context.Context, name, session string) bool {
	rec, err := store.Load(ctx, s.st, name)
	if err != nil {
		s.failed(ctx, err)
		return false
	}
	if rec.Owner == "" || rec.Session != session {
		return true // somebody has seen to it
	}
	if _, done := s.free(ctx, rec, protocol.WhySession); !done {
		return false
	}
	s.tell(name, Freed, "the session that kept it is over")
	return true
}

// forgetSessions deletes the sessions that are over and not named any more. Their keys are never
// used again, and one that isn't there counts as one that is closed.
func (s *sweeper) forgetSessions(ctx context.Context) {
	for _, key := range slices.Sorted(maps.Keys(s.sights)) {
		v := s.sights[key]
		if !v.listed || !v.over || s.named[key] || v.Rec.Version == "" {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.delete(ctx, stale{key, v.Rec.Version, "the session is over"})
	}
}
