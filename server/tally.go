package server

import (
	"fmt"
	"maps"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/store"
)

// tally counts what each caller holds by this server: names and sessions, and the bytes that their
// records are about. It is for bounds, not for safety: it lives in memory, and after a restart it
// learns of a hold when that is renewed.
type tally struct {
	clk  clock.Clock
	most usage

	mu   sync.Mutex
	of   map[string]usage    // by caller; without an entry, nothing
	held map[string]*holding // by key
	keys map[string]string   // of those that their callers have other names for, by these
	tidy int                 // from how many of those on what is over is forgotten
}

// usage is what a caller has, or may have.
type usage struct{ names, sessions, bytes int }

// holding is a name, or a session, that a caller has.
type holding struct {
	who     string
	what    usage
	until   clock.Instant // when it is over unless it is renewed; of what a session keeps, Never
	session string        // that keeps it
	alias   string        // the name that the caller has for it; "" for none
}

// manyHoldings is from how many on what is over is looked for now and then.
const manyHoldings = 1024

// overhead is what a record has beside its info, about.
const overhead = 512

func newTally(clk clock.Clock, most usage) *tally {
	return &tally{clk: clk, most: most, of: map[string]usage{}, held: map[string]*holding{}, keys: map[string]string{}}
}

// share is what a name, or a session, with that info takes.
func share(session bool, key string, info map[string]string) usage {
	u := usage{names: 1, bytes: overhead + len(key)}
	if session {
		u.names, u.sessions = 0, 1
	}
	for k, v := range info {
		u.bytes += len(k) + len(v)
	}
	return u
}

func (u usage) plus(other usage, times int) usage {
	return usage{u.names + times*other.names, u.sessions + times*other.sessions, u.bytes + times*other.bytes}
}

// claim is what a caller has asked for, until it is kept or given up.
type claim struct {
	who      string
	what     usage
	alias    string // the name that the caller has for it, if that isn't its key
	reserved bool   // it is counted; what the caller has anyway is not counted twice
}

// reserve counts what a caller asks for: a key, or what it has a name of its own for. It returns a
// problem when that is more than it may have.
func (t *tally) reserve(who, key, alias string, what usage) (claim, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := claim{who: who, what: what, alias: alias}
	if alias != "" {
		key = t.keys[alias]
	}
	if h := t.held[key]; h != nil && h.who == who && h.until > t.clk.Now() {
		return o, nil
	}
	err := t.room(who, what)
	if err != nil {
		t.sweep()
		err = t.room(who, what)
	}
	if o.reserved = err == nil; o.reserved {
		t.add(who, what, 1)
	}
	return o, err
}

// room returns a problem if a caller may not have more of that. t.mu is held.
func (t *tally) room(who string, what usage) error {
	next := t.of[who].plus(what, 1)
	for _, b := range []struct {
		field            string
		have, want, most int
	}{
		{"names", next.names, what.names, t.most.names}, {"sessions", next.sessions, what.sessions, t.most.sessions}, {"bytes", next.bytes, what.bytes, t.most.bytes},
	} {
		if b.want > 0 && b.have > b.most {
			p := api.NewProblem(api.CodeTooMany, "%s would have %d %s: want at most %d at a time: release some first", who, b.have, b.field, b.most)
			p.Field, p.Want = b.field, fmt.Sprint(b.most)
			return p
		}
	}
	return nil
}

// add counts what a caller has, or with -1 has no more. t.mu is held.
func (t *tally) add(who string, what usage, times int) {
	next := t.of[who].plus(what, times)
	if next == (usage{}) {
		delete(t.of, who)
		return
	}
	t.of[who] = next
}

// sweep forgets what is over. t.mu is held.
func (t *tally) sweep() {
	now := t.clk.Now()
	for key, h := range t.held {
		if h.until <= now {
			t.drop(key)
		}
	}
	for key, h := range t.held {
		if h.session != "" && t.held[h.session] == nil {
			t.drop(key)
		}
	}
}

// drop forgets a key. t.mu is held.
func (t *tally) drop(key string) {
	if h := t.held[key]; h != nil {
		t.add(h.who, h.what, -1)
		delete(t.held, key)
		if t.keys[h.alias] == key {
			delete(t.keys, h.alias)
		}
	}
}

// giveUp counts no more what was reserved.
func (t *tally) giveUp(o claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.reserved {
		t.add(o.who, o.what, -1)
	}
}

// keep counts what was asked for, or what is renewed, as what the caller has by that record.
func (t *tally) keep(o claim, rec store.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.held[rec.Key]
	if h != nil && !o.reserved && h.who == o.who {
		h.until = t.end(rec)
		return
	}
	t.drop(rec.Key) // another's term, which is over, or the same request's
	if !o.reserved {
		t.add(o.who, o.what, 1)
	}
	t.held[rec.Key] = &holding{o.who, o.what, t.end(rec), rec.Session, o.alias}
	if o.alias != "" {
		t.keys[o.alias] = rec.Key
	}
	if len(t.held) >= max(t.tidy, manyHoldings) {
		t.sweep()
		t.tidy = 2 * len(t.held)
	}
}

func (t *tally) end(rec store.Record) clock.Instant {
	if rec.Session != "" {
		return clock.NoDeadline
	}
	return t.clk.Now().Add(rec.TTL)
}

// over forgets what was released, with all that it kept if it was a session.
func (t *tally) over(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
	if isSession(key) {
		for name, h := range maps.All(t.held) {
			if h.session == key {
				t.drop(name)
			}
		}
	}
}

// lost forgets a name that a session keeps no more.
func (t *tally) lost(name, session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.held[name]; h != nil && h.session == session {
		t.drop(name)
	}
}

// renewed notes that what a caller has was renewed.
func (s *Server) renewed(c *call, g lessor.Grant) {
	rec := g.Record
	s.tally.keep(claim{who: c.payer, what: share(isSession(rec.Key), rec.Key, rec.Info)}, rec)
}
