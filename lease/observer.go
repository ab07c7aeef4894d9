package lease

import (
	"context"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// MaxObserved is the number of records of which an [Observer] remembers what it saw. A record that
// the observer forgets costs a wait of one more TTL.
const MaxObserved = 1 << 16

// ObserverOptions are the settings of an [Observer]. The zero value is right for most programs.
type ObserverOptions struct {
	Clock clock.Clock // the source of time; [clock.System] by default

	// Sightings is what earlier processes saw; see [Options.Sightings]. The observer notes there
	// what it sees, and doesn't save it.
	Sightings *sightings.Book
}

// Observer tells how names stand, by the rules by which a holder is taken to be dead. It remembers
// what it saw, so ask the same observer again. Where the store vouches for no age, a hold is
// expired when it has not changed for its TTL since the observer first saw it. An Observer writes
// nothing. It is safe for concurrent use.
type Observer struct {
	st   store.Store
	clk  clock.Clock
	book *sightings.Book

	mu   sync.Mutex // never held over I/O on the store
	seen map[string]protocol.Seen
}

// NewObserver returns an observer that has seen nothing of st, which the observer doesn't own. It
// does no I/O.
func NewObserver(st store.Store, opts ObserverOptions) *Observer {
	if opts.Clock == nil {
		opts.Clock = clock.System()
	}
	if store.Describe(st).Age {
		opts.Sightings = nil
	}
	return &Observer{st: st, clk: opts.Clock, book: opts.Sightings, seen: map[string]protocol.Seen{}}
}

// Status reads the record of a name, and the record of the session that keeps the name. It returns
// how the name stands. A name that nobody ever held is free, without an error. Status blocks until
// the store has answered or ctx is done.
func (o *Observer) Status(ctx context.Context, name string) (Status, error) {
	rec, err := store.Load(ctx, o.st, name)
	if err != nil {
		return Status{}, fmt.Errorf("look at %s: %w", name, err)
	}
	return o.Of(ctx, rec)
}

// Of is [Observer.Status] of a name whose record has just been read. If a session keeps the name,
// Of reads the session's record.
func (o *Observer) Of(ctx context.Context, rec store.Record) (Status, error) {
	o.note(rec, o.clk.Now())
	if rec.Owner != "" && rec.Session != "" {
		session, err := store.Load(ctx, o.st, rec.Session)
		if err != nil {
			return Status{}, fmt.Errorf("look at the session that keeps %s: %w", rec.Key, err)
		}
		o.note(session, o.clk.Now())
	}
	return o.statusOf(rec, o.clk.Now()), nil
}

// Saw is [Observer.Of] without I/O. Of a session that keeps the name, Saw knows what the observer
// has seen before. A session of which nothing is known counts as alive.
func (o *Observer) Saw(rec store.Record) Status {
	now := o.clk.Now()
	seen, session := o.note(rec, now)
	return statusOf(seen, session, now)
}

// Known returns how a name stands now, by what the observer read of it before. Known does no I/O,
// so it misses what has been written since. The record lacks Data, Past and Info. Of a name that
// the observer never looked at, only Name is set.
func (o *Observer) Known(name string) Status {
	o.mu.Lock()
	seen := o.seen[name]
	o.mu.Unlock()
	if !seen.Known {
		return Status{Name: name}
	}
	return o.statusOf(seen.Rec, o.clk.Now())
}

// note takes down a record that has just been read. It returns what is known of the record, and of
// the session that keeps it.
func (o *Observer) note(rec store.Record, now clock.Instant) (seen, session protocol.Seen) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen, known := o.seen[rec.Key]
	if !known && rec.Owner != "" {
		seen = recalled(o.book, rec.Key, now)
	}
	if !known && len(o.seen) >= MaxObserved {
		for key := range o.seen { // any one
			delete(o.seen, key)
			break
		}
	}
	seen = seen.Note(rec, now)
	kept := seen // without what may be long, and says nothing of life
	kept.Rec.Data, kept.Rec.Past, kept.Rec.Info = nil, nil, nil
	o.seen[rec.Key] = kept
	o.book.Note(rec, seen.Since)
	return seen, o.sessionOf(rec)
}

// sessionOf returns what is known of the session that keeps a record. o.mu is held.
func (o *Observer) sessionOf(rec store.Record) protocol.Seen {
	if rec.Session == "" {
		return protocol.Seen{}
	}
	return o.seen[rec.Session]
}

// statusOf says how rec, which was noted, stands now.
func (o *Observer) statusOf(rec store.Record, now clock.Instant) Status {
	o.mu.Lock()
	seen, session := o.seen[rec.Key], o.sessionOf(rec)
	o.mu.Unlock()
	// What another goroutine has read since is another write.
	return statusOf(seen.Note(rec, now), session, now)
}

// statusOf is the one place that says how a record stands to who wants nothing of it.
func statusOf(seen, session protocol.Seen, now clock.Instant) Status {
	rec := seen.Rec
	s := Status{Name: rec.Key, Standing: NameHeld, Holder: rec.Owner, Token: rec.Token, Note: rec.Note, Session: rec.Session, Record: rec}
	verdict := protocol.Judge(seen, session, "", nil, now)
	if verdict.Standing == protocol.Free {
		s.Standing, s.Session = NameFree, ""
		return s
	}
	s.Since, s.TTL = rec.Acquired, rec.TTL
	sign := seen
	if session.Known {
		sign, s.TTL = session, session.Rec.TTL
	}
	if sign.Since != clock.Ended {
		s.Silent = max(now.Sub(sign.Since), 0)
	}
	switch verdict.Standing {
	case protocol.SessionUnknown:
		s.Silent, s.ExpiresIn = 0, rec.TTL
	case protocol.Taken:
		s.ExpiresIn = max(verdict.Until.Sub(now), 0)
	default:
		s.Standing = NameExpired
		return s
	}
	switch rec.Intervention {
	case store.InterventionBroken:
		s.Standing = NameBroken
	case store.InterventionHandedOver:
		s.Standing = NameHanded
	}
	return s
}

// recalled returns a sighting. Its record has no version: it is read before anything is done about
// it.
func recalled(book *sightings.Book, key string, now clock.Instant) protocol.Seen {
	rec, since, known := book.Recall(key, now)
	return protocol.Seen{Rec: rec, Since: since, Known: known}
}
