package server

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// A lease that a session keeps isn't renewed itself: what is left of it is what is left of its
// session. The board follows the sessions that keep a name, and tells each renewal once, however
// many names it is for.

// sessionEvent tells of a session as its record says. One that isn't stored, or has no owner, is
// over for good.
func (s *Server) sessionEvent(rec store.Record) (*api.SessionEvent, lease.Status) {
	e, seen := &api.SessionEvent{Session: rec.Key, Gone: rec.Owner == ""}, s.obs.Saw(rec)
	if !e.Gone {
		left := api.Seconds(seen.ExpiresIn)
		e.TTL, e.ExpiresIn = api.Seconds(rec.TTL), &left
	}
	return e, seen
}

// withSession has a lease say what is left of the session that keeps it, if one does.
func (s *Server) withSession(ctx context.Context, l *api.Lease) error {
	if l.Session == "" {
		return nil
	}
	rec, err := store.Load(ctx, s.st, l.Session)
	if err != nil {
		return err
	}
	e, seen := s.sessionEvent(rec)
	l.TTL = &e.TTL
	observe(l, seen)
	if e.Gone {
		l.TTL, l.State = nil, api.StateExpired
	}
	return nil
}

// isSession reports whether a key is that of a session's record.
func isSession(key string) bool { return keyspace.OwnerOf(key) != "" }

// keep notes that a session keeps one name more, and another one less; "" is none. b.mu is held.
func (b *board) keep(session, before string) {
	if session == before {
		return
	}
	if b.kept[before]--; b.kept[before] <= 0 {
		delete(b.kept, before)
	}
	if session == "" {
		return
	}
	b.kept[session]++
	// Whoever watches names of which this is the first with that session has not been told of it.
	if as := b.sessions[session]; as != nil {
		b.note(&item{key: as.key, version: as.version, at: as.at, session: true, gone: as.gone, left: as.left, body: as.body}, as)
	}
}

// changeSession notes a session as it is. b.mu is held.
func (b *board) changeSession(rec store.Record, now clock.Instant) {
	before := b.sessions[rec.Key]
	if before != nil && (before.version == rec.Version || before.gone) {
		return
	}
	e, _ := b.s.sessionEvent(rec)
	as := &item{key: rec.Key, version: rec.Version, at: now, session: true, gone: e.Gone, left: e.ExpiresIn}
	e.ExpiresIn = nil
	b.encoded.Add(1)
	as.encode(e)
	b.sessions[rec.Key] = as
	if b.kept[rec.Key] > 0 {
		b.note(as, before)
	}
}

// missing returns the sessions that keep one of the records and are not among those that were
// found: they are over, or younger than the list of sessions.
func (b *board) missing(found sight) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := map[string]bool{}
	for _, rec := range found.names {
		if rec.Session == "" || rec.Owner == "" {
			continue
		}
		_, listed := found.sessions[rec.Session]
		if as := b.sessions[rec.Session]; !listed && (as == nil || !as.gone) {
			keys[rec.Session] = true
		}
	}
	return keys
}

// loadSessions adds the sessions with those keys to what was found.
func (b *board) loadSessions(ctx context.Context, keys map[string]bool, found sight) error {
	for key := range keys {
		rec, err := store.Load(ctx, b.s.st, key)
		if err != nil {
			return err
		}
		heard(ctx)
		found.sessions[key] = rec
	}
	return nil
}

// forget drops the sessions that are over and keep nothing any more. b.mu is held.
func (b *board) forget(sessions map[string]store.Record) {
	for key := range b.sessions {
		if _, ok := sessions[key]; !ok && b.kept[key] == 0 {
			delete(b.sessions, key)
		}
	}
}

// left is how much there is at a time of what was left at another.
func left(then *api.Seconds, passed time.Duration) *api.Seconds {
	if then == nil {
		return nil
	}
	now := api.Seconds(max(time.Duration(*then)-passed, 0))
	return &now
}
