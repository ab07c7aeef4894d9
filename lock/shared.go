package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// shared is a lock with a roster, as one session uses it.
type shared struct {
	s     *lease.Session
	m     *lease.Manager
	st    store.Store     // with bounded requests
	watch *sessions.Watch // outlives one attempt, so that callers who only try notice a death, too
	name  string
	kind  store.Kind
	limit int
	fair  bool
	joins bool // who holds the name alone, by its lease, is waited for as a writer is

	alone *lease.Observer // of who holds the name alone
}

func newShared(s *lease.Session, name string, kind store.Kind, limit int, fair bool) (*shared, error) {
	if s == nil {
		return nil, fmt.Errorf("lock %q: session is nil", name)
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	l := watching(s.Manager(), name, kind, limit)
	l.s, l.st, l.fair = s, sessions.Bounded(l.m), fair
	return l, nil
}

// watching returns a lock that is looked at, or changed, without a session.
func watching(m *lease.Manager, name string, kind store.Kind, limit int) *shared {
	book := m.Options().Sightings
	alone := lease.NewObserver(m.Store(), lease.ObserverOptions{Clock: m.Clock(), Sightings: book})
	return &shared{m: m, st: m.Store(), watch: sessions.NewWatch(m, book), name: name, kind: kind, limit: limit, alone: alone}
}

func checkName(name string) error {
	if err := driver.CheckKey(roster.Prefix + name); err != nil || name == "" {
		return fmt.Errorf("lock name %.60q: want 1 to %d bytes of printable UTF-8", name, store.MaxKey-len(roster.Prefix))
	}
	return nil
}

// attempt is one acquisition.
type attempt struct {
	*shared
	mine  roster.Entry
	try   bool   // it doesn't wait: neither for the share nor for the store
	doubt bool   // a write that shows mine may have landed, or may land yet
	base  string // the version that the last such write was to replace

	over map[string]bool // sessions: those that are over stay so
	due  clock.Instant   // when to look at sessions again
	aged clock.Instant   // from when it stands in line though the lock isn't fair
	next []string        // sessions: if one of them ends, it is time to look

	failures int              // in a row
	failed   string           // why it last tried again
	waits    *lease.HeldError // whom it waits for; nil when it doesn't
}

// acquire takes a share. With try it doesn't wait: a share that isn't to be had is a *HeldError.
func (l *shared) acquire(ctx context.Context, weight int, try bool) (*Hold, error) {
	if weight < 1 || weight > l.limit {
		return nil, fmt.Errorf("%s: weight %d: want 1 to %d, the limit", l.name, weight, l.limit)
	}
	joined, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session := l.s.Context()
	defer context.AfterFunc(session, func() { cancel(context.Cause(session)) })()
	mine := roster.Entry{ID: rand.Text(), Session: l.s.Key(), Weight: weight, Since: l.m.Clock().Wall()}
	a := &attempt{shared: l, mine: mine, try: try, over: map[string]bool{}, due: clock.Ended}
	if a.aged = clock.Ended; !l.fair {
		a.aged = l.m.Clock().Now().Add(l.m.TTL())
	}
	granted, err := a.pursue(joined)
	if err == nil {
		err = l.s.Check() // the session may have ended while the write was on its way
	}
	if err != nil {
		a.withdraw()
		if a.waits != nil && ctx.Err() != nil {
			err = errors.Join(err, a.waits.Err)
		}
		return nil, fmt.Errorf("acquire %s: %w", l.name, err)
	}
	return l.hold(granted), nil
}

// pursue reads the roster and acts on it until the share is granted.
func (a *attempt) pursue(ctx context.Context) (roster.Entry, error) {
	rec, err := a.load(ctx)
	for {
		if err != nil {
			return roster.Entry{}, err
		}
		f, failure := a.find(ctx, rec, a.over)
		r := f.roster
		i := roster.Find(r.Held, a.mine.ID)
		if failure == nil && f.holder == "" && i < 0 {
			failure = a.look(ctx, r)
		}
		switch {
		case failure != nil:
			rec, err = a.again(ctx, failure)
			continue
		case i >= 0:
			return r.Held[i], nil
		case f.holder != "" && a.try:
			return roster.Entry{}, a.heldBy(rec).Err
		case f.holder != "":
			a.due, a.next = f.due, nil
			if rec.Session != "" {
				a.next = []string{rec.Session}
			}
			rec, err = a.wait(ctx, rec, a.heldBy(rec))
			a.due = clock.Ended
			continue
		}
		changed := r.Drop(func(session string) bool { return a.over[session] })
		switch crowded := a.crowded(r); {
		case r.Grants(a.mine) && !crowded:
			token, err := protocol.NextToken(f.rec.Token, a.m.Clock().Wall())
			if err != nil {
				return roster.Entry{}, err
			}
			f.rec.Token = token
			r.Grant(a.mine, token)
		case a.try:
			return roster.Entry{}, a.held(r).Err
		case a.inLine() && !crowded && roster.Find(r.Queue, a.mine.ID) < 0:
			r.Queue = append(r.Queue, a.mine)
		case !changed:
			rec, err = a.wait(ctx, rec, a.held(r))
			continue
		}
		rec, err = a.write(ctx, f.rec, r)
	}
}

// inLine reports whether the attempt is one that waits in line. Where nobody does, a heavy share
// may find too little free at every instant at which light ones are given back. So who has waited
// for a TTL takes a place, whatever its weight: else the light would starve behind the heavy.
func (a *attempt) inLine() bool { return a.m.Clock().Now() >= a.aged }

// crowded reports whether there is no room on the roster for who isn't on it yet. The last place is
// no reader's: a writer has it to wait in.
func (a *attempt) crowded(r roster.Roster) bool {
	room := MaxShares
	if a.kind == roster.RW && a.mine.Weight < a.limit {
		room--
	}
	return roster.Find(r.Queue, a.mine.ID) < 0 && len(r.Held)+len(r.Queue) >= room
}

// look looks at the sessions of those before this attempt, if it is time to: in a line, at that of
// who is next before it. A renewal changes no roster, so that is every third of the TTL, or when
// one may have died. Nobody is looked at when nobody is in the way. A roster with another limit is
// an error, unless that was set for all.
func (a *attempt) look(ctx context.Context, r roster.Roster) error {
	if r.Limit != a.limit && (!r.Set || a.mine.Weight > r.Limit) {
		return &MismatchError{Name: a.name, Stored: r.Limit, Asked: a.limit}
	}
	line := r.Line(a.mine.ID)
	look := a.watch.Behind
	// The first in line, and who doesn't stand in one, waits for each of the holders.
	if len(line) == 0 {
		look = a.watch.Over
	}
	var keys []string
	for _, e := range slices.Concat(line, r.Held) {
		if !a.over[e.Session] {
			keys = append(keys, e.Session)
		}
	}
	if a.next = keys; len(line) > 0 {
		a.next = keys[:min(1, len(keys))]
	}
	now := a.m.Clock().Now()
	if now < a.due || r.Grants(a.mine) && !a.crowded(r) {
		return nil
	}
	over, next, err := look(ctx, keys)
	if err != nil {
		return err
	}
	maps.Copy(a.over, over)
	a.due = min(next, now.Add(a.m.TTL()/3))
	return nil
}

// heldBy says who holds the name alone.
func (a *attempt) heldBy(rec store.Record) *lease.HeldError {
	e := &HeldError{Name: a.name, Wanted: a.mine.Weight, Holders: []string{rec.Owner}}
	return &lease.HeldError{Name: a.name, Holder: rec.Owner, Since: rec.Acquired, Token: rec.Token, Note: rec.Note, Err: e}
}

// held says who is in the way: the first of them, and all of them.
func (a *attempt) held(r roster.Roster) *lease.HeldError {
	before := r.Before(a.mine.ID)
	e := &HeldError{Name: a.name, Wanted: a.mine.Weight, Free: r.Free(), Waiting: len(before) - len(r.Held)}
	for _, h := range r.Held {
		e.Holders = append(e.Holders, keyspace.OwnerOf(h.Session))
	}
	first := &lease.HeldError{Name: a.name, Err: e}
	if len(before) > 0 {
		first.Holder, first.Since, first.Token = keyspace.OwnerOf(before[0].Session), before[0].Since, before[0].Token
	}
	return first
}

// waitsFor tells the program whom it waits for, when that is news.
func (a *attempt) waitsFor(holder *lease.HeldError) {
	tell := a.m.Options().OnWait
	if tell != nil && (a.waits == nil || a.waits.Err.Error() != holder.Err.Error()) {
		tell(holder)
	}
	a.waits = holder
}

// wait blocks until the roster changes, or the sessions of those before this one have to be looked
// at.
func (a *attempt) wait(ctx context.Context, rec store.Record, holder *lease.HeldError) (store.Record, error) {
	a.waitsFor(holder)
	pause := a.due.Sub(a.m.Clock().Now())
	limited, cancel := clock.WithTimeout(ctx, a.m.Clock(), max(pause, time.Millisecond))
	died := a.watch.Mourn(limited, a.next, cancel)
	wait := store.Wait
	if rec.Owner != "" && rec.Session == "" { // it holds the name alone
		wait = driver.WaitHolder
	}
	got, err := wait(limited, a.m.Store(), rec.Key, rec.Version)
	over := limited.Err() != nil
	cancel() // before what waits for the others' ends
	if died() {
		a.due = clock.Ended
	}
	switch {
	case err == nil:
		a.failures = 0
		return got, nil
	case ctx.Err() != nil:
		return store.Record{}, context.Cause(ctx)
	case over:
		a.failures = 0
		return rec, nil
	}
	return a.again(ctx, err)
}

// load reads the record, and tries again for as long as the store fails.
func (a *attempt) load(ctx context.Context) (store.Record, error) {
	for n := 0; ; n++ {
		rec, err := store.Load(ctx, a.st, a.key())
		if err == nil || fatal(err) || a.try {
			return rec, err
		}
		if err := a.retry(ctx, n, err); err != nil {
			return store.Record{}, err
		}
	}
}

// again reads the record after a failure of something else, unless that is the end.
func (a *attempt) again(ctx context.Context, failure error) (store.Record, error) {
	if fatal(failure) || a.try {
		return store.Record{}, failure
	}
	if err := a.retry(ctx, a.failures, failure); err != nil {
		return store.Record{}, err
	}
	a.failures++
	return a.load(ctx)
}

// retry is pause, and tells the program of the failure when that is news.
func (a *attempt) retry(ctx context.Context, n int, failure error) error {
	if news := failure.Error(); news != a.failed && ctx.Err() == nil {
		a.failed = news
		if tell := a.m.Options().OnRetry; tell != nil {
			tell(a.name, failure)
		}
	}
	return a.pause(ctx, n, failure)
}

// fatal reports whether an error won't go away by trying again.
func fatal(err error) bool {
	for _, end := range []error{store.ErrCorrupt, store.ErrInvalid, store.ErrClosed, store.ErrKind, ErrMismatch} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// pause waits before the nth try after a failure. When ctx ends, the error says what failed, too.
func (l *shared) pause(ctx context.Context, n int, failure error) error {
	d := min(l.m.TTL()/100<<min(n, 6), l.m.TTL()/3)
	if err := clock.Sleep(ctx, l.m.Clock(), d/2+mathrand.N(d)); err != nil {
		return errors.Join(context.Cause(ctx), failure)
	}
	return nil
}

// write replaces the record by one with r. It returns the record as it is now, whether that is the
// one or another.
func (a *attempt) write(ctx context.Context, rec store.Record, r roster.Roster) (store.Record, error) {
	if err := r.Write(&rec); err != nil {
		return store.Record{}, err
	}
	rec.Nonce, a.base = rand.Text(), rec.Version
	got, err := a.st.Put(ctx, rec)
	var conflict *store.ConflictError
	switch {
	case err == nil:
		a.doubt, a.failures = true, 0
		return got, nil
	case errors.As(err, &conflict):
		a.failures = 0
		return conflict.Current, nil
	case errors.Is(err, store.ErrNotFound): // it was deleted
		return a.load(ctx)
	case errors.Is(err, store.ErrUnknownOutcome):
		a.doubt = true
		if a.try {
			return a.load(ctx) // the roster tells
		}
	}
	return a.again(ctx, err)
}

// withdraw takes what an attempt may have written off the roster again, in the background.
func (a *attempt) withdraw() {
	if !a.doubt {
		return
	}
	a.s.Background(func(ctx context.Context) { _ = a.remove(ctx, a.mine.ID, &a.base) })
}

// remove takes an entry off the roster. It blocks until that is known to be done, or ctx is done.
// When the entry isn't there, the record is written all the same: only then no write that shows it
// can land any more. A name that has become another kind has no such entry; then it is enough that
// it has another version than base, which that write was to replace, if there may be one.
func (l *shared) remove(ctx context.Context, id string, base *string) error {
	for n := 0; ; n++ {
		err := store.Update(ctx, l.st, l.key(), func(rec *store.Record) (bool, error) {
			if other := rec.Owner != "" || rec.Kind != "" && rec.Kind != l.kind; other && l.kind != roster.Mutex {
				if base == nil || rec.Version != *base {
					return false, nil
				}
				// As it was to be taken.
				*rec = protocol.Freed(*rec, protocol.WhyExpired, l.m.Clock().Wall(), "")
				return true, nil
			}
			f, err := l.find(ctx, *rec, map[string]bool{})
			if err != nil {
				return false, err
			}
			f.roster.Remove(id)
			*rec = f.rec
			return true, f.roster.Write(rec)
		})
		if err == nil || fatal(err) {
			return err
		}
		if err := l.pause(ctx, n, err); err != nil {
			return err
		}
	}
}
