package server

import (
	"context"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// A lease that a session keeps isn't renewed itself: what is left of it is what is left of its session. The board follows the sessions
// that keep a name, and tells each renewal once, however many names it is for.

// remaining is how much is left of a record that is renewed itself; nil when the store can't tell.
func remaining(rec store.Record) *wire.Seconds {
	if rec.Age <= 0 {
		return nil
	}
	left := wire.Seconds(max(rec.TTL-rec.Age, 0))
	return &left
}

// sessionEvent tells of a session as its record says. One that isn't stored, or has no owner, is over for good.
func sessionEvent(rec store.Record) *wire.SessionEvent {
	e := &wire.SessionEvent{Session: rec.Key, Gone: rec.Owner == ""}
	if !e.Gone {
		e.TTL, e.ExpiresIn = wire.Seconds(rec.TTL), remaining(rec)
	}
	return e
}

// withSession has a lease say what is left of the session that keeps it, if one does.
func (s *Server) withSession(ctx context.Context, l *wire.Lease) error {
	if l.Session == "" {
		return nil
	}
	rec, err := store.Load(ctx, s.st, l.Session)
	if err != nil {
		return err
	}
	e := sessionEvent(rec)
	l.TTL, l.ExpiresIn = &e.TTL, e.ExpiresIn
	if e.Gone {
		over := wire.Seconds(0)
		l.TTL, l.ExpiresIn = nil, &over
	}
	return nil
}

// isSession reports whether a key is that of a session's record.
func isSession(key string) bool { return lease.OwnerOf(key) != "" }

// keep notes that a session keeps a name, in the place of the one that kept it before; "" is none. b.mu is held.
func (b *board) keep(name, session, before string) {
	if session == before {
		return
	}
	if names := b.kept[before]; names != nil {
		delete(names, name)
		if len(names) == 0 {
			delete(b.kept, before)
		}
	}
	if session == "" {
		return
	}
	if b.kept[session] == nil {
		b.kept[session] = map[string]struct{}{}
	}
	b.kept[session][name] = struct{}{}
	// Whoever watches names of which this is the first with that session has not been told of it.
	if as, ok := b.sessions[session]; ok {
		b.note(as)
	}
}

// keeps reports whether a session keeps a name that begins with prefix. b.mu is held.
func (b *board) keeps(session, prefix string) bool {
	if prefix == "" {
		return len(b.kept[session]) > 0
	}
	for name := range b.kept[session] {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// changeSession notes a session as it is. b.mu is held.
func (b *board) changeSession(rec store.Record, now clock.Instant) {
	before, known := b.sessions[rec.Key]
	if known && (before.version == rec.Version || before.session.Gone) {
		return
	}
	as := seen{key: rec.Key, version: rec.Version, session: sessionEvent(rec), at: now}
	b.sessions[rec.Key] = as
	if len(b.kept[rec.Key]) > 0 {
		b.note(as)
	}
}

// missing returns the sessions that keep one of the records and are not among those that were found: they are over, or younger than
// the list of sessions.
func (b *board) missing(found sight) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := map[string]bool{}
	for _, rec := range found.names {
		if rec.Session == "" || rec.Owner == "" {
			continue
		}
		_, listed := found.sessions[rec.Session]
		if as, known := b.sessions[rec.Session]; !listed && (!known || !as.session.Gone) {
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
		found.sessions[key] = rec
	}
	return nil
}

// forget drops the sessions that are over and keep nothing any more. b.mu is held.
func (b *board) forget(sessions map[string]store.Record) {
	for key := range b.sessions {
		if _, ok := sessions[key]; !ok && len(b.kept[key]) == 0 {
			delete(b.sessions, key)
		}
	}
}

// left is how much there is at a time of what was left at another.
func left(then *wire.Seconds, passed time.Duration) *wire.Seconds {
	if then == nil {
		return nil
	}
	now := wire.Seconds(max(time.Duration(*then)-passed, 0))
	return &now
}
