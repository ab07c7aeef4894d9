package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// shared is a lock with a roster, as one session uses it.
type shared struct {
	s     *lease.Session
	m     *lease.Manager
	name  string
	kind  string
	limit int
	fair  bool
}

func newShared(s *lease.Session, name, kind string, limit int, fair bool) (*shared, error) {
	if s == nil {
		return nil, fmt.Errorf("lock %q: session is nil", name)
	}
	if err := store.CheckKey(prefix + name); err != nil || name == "" {
		return nil, fmt.Errorf("lock name %.60q: want 1 to %d bytes of printable UTF-8", name, store.MaxKey-len(prefix))
	}
	return &shared{s: s, m: s.Manager(), name: name, kind: kind, limit: limit, fair: fair}, nil
}

// attempt is one acquisition.
type attempt struct {
	*shared
	mine  entry
	watch *sessions.Watch
	doubt bool // a write that shows mine may have landed, or may land yet
}

func (l *shared) attempt(weight int) *attempt {
	return &attempt{
		shared: l, watch: sessions.NewWatch(l.m),
		mine: entry{ID: rand.Text(), Session: l.s.Key(), Weight: weight, Since: l.m.Clock().Wall()},
	}
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
	a := l.attempt(weight)
	granted, err := a.pursue(joined, try)
	if err == nil {
		err = l.s.Check() // the session may have ended while the write was on its way
	}
	if err != nil {
		a.withdraw()
		return nil, fmt.Errorf("acquire %s: %w", l.name, err)
	}
	return l.hold(granted), nil
}

// pursue reads the roster and acts on it until the share is granted.
func (a *attempt) pursue(ctx context.Context, try bool) (entry, error) {
	rec, err := a.load(ctx)
	for {
		if err != nil {
			return entry{}, err
		}
		var r roster
		if r, err = a.roster(rec); err != nil {
			return entry{}, err
		}
		if i := find(r.Held, a.mine.ID); i >= 0 {
			return r.Held[i], nil
		}
		gone, next, err1 := a.blockers(ctx, r)
		if err1 != nil {
			return entry{}, err1
		}
		changed := false
		for id := range gone {
			changed = r.remove(id) || changed
		}
		switch {
		case r.grants(a.mine):
			token, err := rules.NextToken(rec.Token, a.m.Clock().Wall())
			if err != nil {
				return entry{}, err
			}
			rec.Token = token
			r.grant(a.mine, token)
		case try:
			return entry{}, a.held(r)
		case a.fair && find(r.Queue, a.mine.ID) < 0:
			if len(r.Held)+len(r.Queue) >= MaxShares {
				return entry{}, ErrFull
			}
			r.Queue = append(r.Queue, a.mine)
		case !changed:
			rec, err = a.wait(ctx, rec, next)
			continue
		}
		rec, err = a.write(ctx, rec, r)
	}
}

// blockers returns which of those before this attempt are gone. Nobody is looked at when nobody is in the way.
func (a *attempt) blockers(ctx context.Context, r roster) (map[string]bool, clock.Instant, error) {
	if r.grants(a.mine) {
		return nil, clock.Never, nil
	}
	before := r.before(a.mine.ID)
	keys := make([]string, len(before))
	for i, e := range before {
		keys[i] = e.Session
	}
	over, next, err := a.watch.Over(ctx, keys)
	gone := map[string]bool{}
	for _, e := range before {
		if over[e.Session] {
			gone[e.ID] = true
		}
	}
	return gone, next, err
}

func (a *attempt) held(r roster) error {
	e := &HeldError{Name: a.name, Wanted: a.mine.Weight, Free: r.free(), Waiting: len(r.Queue)}
	for _, h := range r.Held {
		e.Holders = append(e.Holders, lease.OwnerOf(h.Session))
	}
	return e
}

// roster reads the record's roster, and sees that all agree on what the lock is. A new one is what this user says.
func (l *shared) roster(rec store.Record) (roster, error) {
	r, err := readRoster(rec)
	switch {
	case err != nil:
		return roster{}, err
	case r.Kind == "":
		r.Kind, r.Limit = l.kind, l.limit
	case r.Kind != l.kind:
		return roster{}, &MismatchError{Name: l.name, Field: "kind", Stored: r.Kind, Asked: l.kind}
	case r.Limit != l.limit:
		return roster{}, &MismatchError{Name: l.name, Field: "limit", Stored: strconv.Itoa(r.Limit), Asked: strconv.Itoa(l.limit)}
	}
	return r, nil
}

// wait blocks until the roster changes, or a session before this one has to be looked at.
func (a *attempt) wait(ctx context.Context, rec store.Record, next clock.Instant) (store.Record, error) {
	now := a.m.Clock().Now()
	// A renewal of a session changes no roster: to be looked at only when it may be dead would be to notice its end late.
	pause := min(next.Sub(now), a.m.TTL()/3)
	limited, cancel := clock.WithTimeout(ctx, a.m.Clock(), max(pause, time.Millisecond))
	defer cancel()
	got, err := store.Wait(limited, a.m.Store(), rec.Key, rec.Version)
	switch {
	case err == nil:
		return got, nil
	case ctx.Err() != nil:
		return store.Record{}, context.Cause(ctx)
	case limited.Err() != nil:
		return rec, nil
	}
	return a.load(ctx)
}

// load reads the record, and tries again for as long as the store fails.
func (l *shared) load(ctx context.Context) (store.Record, error) {
	for n := 0; ; n++ {
		rec, err := l.request(ctx, func(ctx context.Context) (store.Record, error) {
			return store.Load(ctx, l.m.Store(), prefix+l.name)
		})
		if err == nil || fatal(err) {
			return rec, err
		}
		if err := l.pause(ctx, n, err); err != nil {
			return store.Record{}, err
		}
	}
}

// fatal reports whether an error won't go away by trying again.
func fatal(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrClosed)
}

// request bounds one request, so that one that gets no answer isn't all.
func (l *shared) request(ctx context.Context, do func(context.Context) (store.Record, error)) (store.Record, error) {
	ctx, cancel := clock.WithTimeout(ctx, l.m.Clock(), l.m.TTL()/10)
	defer cancel()
	return do(ctx)
}

// pause waits before the nth try after a failure. When ctx ends, the error says what failed, too.
func (l *shared) pause(ctx context.Context, n int, failure error) error {
	d := min(l.m.TTL()/100<<min(n, 6), l.m.TTL()/3)
	if err := clock.Sleep(ctx, l.m.Clock(), d/2+mathrand.N(d)); err != nil {
		return errors.Join(context.Cause(ctx), failure)
	}
	return nil
}

// write replaces the record by one with r. It returns the record as it is now, whether that is the one or another.
func (a *attempt) write(ctx context.Context, rec store.Record, r roster) (store.Record, error) {
	rec, err := r.write(rec)
	if err != nil {
		return store.Record{}, err
	}
	rec.Nonce = rand.Text()
	got, err := a.request(ctx, func(ctx context.Context) (store.Record, error) { return a.m.Store().Put(ctx, rec) })
	var conflict *store.ConflictError
	switch {
	case err == nil:
		a.doubt = true
		return got, nil
	case errors.As(err, &conflict):
		return conflict.Current, nil
	case errors.Is(err, store.ErrNotFound): // it was deleted
		return store.Record{Key: rec.Key}, nil
	case errors.Is(err, store.ErrUnknownOutcome):
		a.doubt = true
	case fatal(err):
		return store.Record{}, err
	}
	// What is unknown is told by the roster.
	if err := a.pause(ctx, 0, err); err != nil {
		return store.Record{}, err
	}
	return a.load(ctx)
}

// withdraw takes what an attempt may have written off the roster again, in the background.
func (a *attempt) withdraw() {
	if !a.doubt {
		return
	}
	a.s.Background(func(ctx context.Context) { _ = a.remove(ctx, a.mine.ID) })
}

// remove takes an entry off the roster. It blocks until that is known to be done, or ctx is done. When the entry isn't there,
// the record is written all the same: only then no write that shows it can land any more.
func (l *shared) remove(ctx context.Context, id string) error {
	rec, err := l.load(ctx)
	for n := 0; ; n++ {
		if err != nil {
			return err
		}
		var r roster
		if r, err = readRoster(rec); err != nil {
			return err
		}
		if r.Kind == "" {
			r.Kind, r.Limit = l.kind, l.limit
		}
		r.remove(id)
		next, err1 := r.write(rec)
		if err1 != nil {
			return err1
		}
		next.Nonce = rand.Text()
		_, err1 = l.request(ctx, func(ctx context.Context) (store.Record, error) { return l.m.Store().Put(ctx, next) })
		var conflict *store.ConflictError
		switch {
		case err1 == nil, errors.As(err1, &conflict) && conflict.Current.Nonce == next.Nonce:
			return nil
		case errors.As(err1, &conflict):
			rec = conflict.Current
			continue
		case errors.Is(err1, store.ErrNotFound):
			rec = store.Record{Key: next.Key}
			continue
		case fatal(err1):
			return err1
		}
		if err := l.pause(ctx, n, err1); err != nil {
			return err
		}
		rec, err = l.load(ctx)
	}
}
