package lock

import (
	"context"
	"maps"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// key returns the key of the record with the roster: the name's own. That of a fair mutex, which
// only says whose turn it is, is beside it.
func (l *shared) key() string {
	if l.kind == roster.Mutex {
		return roster.Prefix + l.name
	}
	return l.name
}

// found is what the record of a name says to a caller that wants a share of it.
type found struct {
	rec    store.Record // to be written with a roster, if the name is not held alone
	roster roster.Roster
	holder string        // owner id of who holds the name alone; "" when nobody does
	due    clock.Instant // when to look at that holder again
}

// find reads a record as the roster of the lock. over are sessions that are known to be over; it
// adds to them. A name that nobody uses any more becomes what it is wanted as. One that is in use
// as another kind is a *[store.KindError]; with joins, who holds it alone is waited for instead.
func (l *shared) find(ctx context.Context, rec store.Record, over map[string]bool) (found, error) {
	if rec.Owner != "" && l.kind != roster.Mutex {
		due, ended, err := l.holds(ctx, rec)
		switch {
		case err != nil:
			return found{}, err
		case !ended && l.joins && rec.Kind != store.KindElection && rec.Kind != store.KindPool:
			return found{holder: rec.Owner, due: due}, nil
		case !ended:
			return found{}, l.otherwise(rec.Kind, rec.Owner, nil)
		}
		why := protocol.WhyExpired
		if rec.Session != "" {
			why = protocol.WhySession
		}
		rec = protocol.Freed(rec, why, l.m.Clock().Wall(), "")
	}
	if rec.Kind == store.KindPool && l.kind != roster.Mutex {
		return found{}, l.otherwise(rec.Kind, "", nil)
	}
	list := rec // which has the roster
	if key := kinds.Beside(rec, l.kind); key != "" && l.kind != roster.Mutex {
		beside, err := roster.LoadBeside(ctx, l.st, key)
		if err != nil {
			return found{}, err
		}
		rec.Token = max(rec.Token, beside.Token)
		list = beside
	}
	r, err := l.take(ctx, list, over)
	if err != nil {
		return found{}, err
	}
	if l.kind != roster.Mutex {
		rec.Kind = l.kind
	}
	return found{rec: rec, roster: r}, nil
}

// take returns the roster in a record if it is one of this lock, and else, if nobody is on it, an
// empty one.
func (l *shared) take(ctx context.Context, list store.Record, over map[string]bool) (roster.Roster, error) {
	fresh := roster.Roster{Format: roster.Format, Kind: l.kind, Limit: l.limit}
	if list.Key == l.name && !list.Kind.Shared() { // its data are no roster
		return fresh, nil
	}
	sessions, kind, err := kinds.Members(list)
	if err == nil && kind != "" && kind != l.kind {
		return fresh, l.vacant(ctx, kind, sessions, over)
	}
	if err != nil {
		return roster.Roster{}, err
	}
	r, err := roster.Parse(list)
	switch {
	case err != nil:
		return roster.Roster{}, err
	case r.Kind != l.kind: // a queue of a fair mutex, which keeps nobody out, or nothing
		return fresh, nil
	}
	return r, nil
}

// vacant returns an error unless the sessions of all members of a name of another kind are over.
func (l *shared) vacant(ctx context.Context, kind store.Kind, members []string, over map[string]bool) error {
	gone, _, err := l.watch.Over(ctx, members)
	if err != nil {
		return err
	}
	maps.Copy(over, gone)
	for _, session := range members {
		if !gone[session] {
			return l.otherwise(kind, "", members)
		}
	}
	return nil
}

// otherwise is the error of a name that is in use as another kind.
func (l *shared) otherwise(kind store.Kind, holder string, members []string) error {
	if kind == "" {
		kind = store.KindLease
	}
	wanted := l.kind
	if l.kind == roster.Mutex {
		wanted = store.KindLease
	}
	return &store.KindError{Name: l.name, Kind: kind, Wanted: wanted, Holder: holder, Members: members}
}

// holds looks at who holds a name alone, and reports whether that is over; or else when to look
// again.
func (l *shared) holds(ctx context.Context, rec store.Record) (due clock.Instant, ended bool, err error) {
	if rec.Session != "" {
		over, next, err := l.watch.Over(ctx, []string{rec.Session})
		return min(next, l.m.Clock().Now().Add(l.m.TTL()/3)), over[rec.Session], err
	}
	s := l.alone.Saw(rec)
	return l.m.Clock().Now().Add(s.ExpiresIn), s.Standing == lease.NameExpired, nil
}
