package server

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

const (
	// chronicleRest is how long after a failure of the journal it is tried again.
	chronicleRest = 5 * time.Second
	// chroniclePiece is about how many spans wait for the journal at most. What a look finds beyond
	// that, the next one finds again.
	chroniclePiece = 10_000
)

// chronicle writes down what becomes of names. It compares what the board's looks find with what it
// has noted. A look never waits for the journal.
type chronicle struct {
	s *Server
	j Journal

	mu      sync.Mutex
	lanes   map[string]*lane // nil while the journal isn't kept
	pending []Span
	err     error         // why it isn't kept; nil when it is
	rung    chan struct{} // of capacity 1: a look is over
	done    chan struct{} // closed when run is over
}

// lane is what is noted of one name.
type lane struct {
	saw  sighting
	open []Span      // without an end, as they are noted
	past fence.Token // of the last term that is noted with its end
}

// sighting is what a name looked like: the same one again says nothing new.
type sighting struct {
	version       string
	waits, ran    bool // requests wait; it ran out
	pausedBy, why string
	since         int64
	zone          string
}

func newChronicle(s *Server, j Journal) *chronicle {
	if j == nil {
		return nil
	}
	return &chronicle{s: s, j: j, rung: make(chan struct{}, 1), done: make(chan struct{})}
}

// start has the board look all the time, and writes, until the server closes.
func (c *chronicle) start() {
	if c == nil {
		return
	}
	c.s.board.resident()
	go c.run(c.s.closing)
}

// wait blocks until the last has been written.
func (c *chronicle) wait() {
	if c != nil {
		<-c.done
	}
}

// failure returns why the journal isn't kept; nil when it is, or there is none.
func (c *chronicle) failure() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *chronicle) run(ctx context.Context) {
	defer close(c.done)
	for {
		err := c.begin(ctx)
		for err == nil && ctx.Err() == nil {
			select {
			case <-c.rung:
			case <-ctx.Done():
			}
			err = c.flush(context.WithoutCancel(ctx))
		}
		if ctx.Err() != nil {
			return
		}
		c.fails(err)
		if clock.Sleep(ctx, c.s.clk, chronicleRest) != nil {
			return
		}
	}
}

// begin takes over what stands in the journal.
func (c *chronicle) begin(ctx context.Context) error {
	spans, err := c.j.Standing(ctx)
	if err != nil {
		return err
	}
	lanes := map[string]*lane{}
	for _, s := range spans {
		l := lanes[s.Name]
		if l == nil {
			l = &lane{}
			lanes[s.Name] = l
		}
		l.open = append(l.open, s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lanes, c.pending = lanes, nil
	return nil
}

// flush writes what looks have found.
func (c *chronicle) flush(ctx context.Context) error {
	c.mu.Lock()
	spans := c.pending
	c.pending = nil
	c.mu.Unlock()
	if err := c.j.Note(ctx, spans); err != nil {
		return err
	}
	c.mu.Lock()
	before := c.err
	c.err = nil
	c.mu.Unlock()
	if before != nil && c.s.opts.OnJournal != nil {
		c.s.opts.OnJournal(nil)
	}
	return nil
}

// fails forgets what was noted: what stands then is asked of the journal again.
func (c *chronicle) fails(err error) {
	c.mu.Lock()
	before := c.err
	c.err = &JournalError{err}
	c.lanes, c.pending = nil, nil
	c.mu.Unlock()
	if (before == nil || before.Error() != c.err.Error()) && c.s.opts.OnJournal != nil {
		c.s.opts.OnJournal(c.err)
	}
}

// take takes in what a look found.
func (c *chronicle) take(found sight) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lanes != nil {
		wall := c.s.clk.Wall()
		for name, rec := range found.names {
			if len(c.pending) >= chroniclePiece {
				break
			}
			c.follow(rec, found.pauses[name], found.zones, wall)
		}
		for name := range c.lanes {
			_, there := found.names[name]
			if there || found.corrupt[name] != nil || len(c.pending) >= chroniclePiece {
				continue
			}
			c.follow(store.Record{Key: name}, nil, nil, wall)
			delete(c.lanes, name)
		}
	}
	select {
	case c.rung <- struct{}{}:
	default:
	}
}

// follow notes what has become of one name. c.mu is held.
func (c *chronicle) follow(rec store.Record, pause *api.Pause, zones map[candidacy]string, wall time.Time) {
	saw := sighting{version: rec.Version, waits: c.s.reg.Queued(rec.Key) > 0, zone: zoneOf(rec, zones)}
	if rec.Owner != "" && rec.Session == "" {
		saw.ran = c.s.obs.Saw(rec).Standing == lease.NameExpired
	}
	if pause != nil {
		saw.pausedBy, saw.why, saw.since = pause.By, pause.Reason, pause.Since.UnixMilli()
	}
	l := c.lanes[rec.Key]
	if l == nil {
		l = &lane{}
		c.lanes[rec.Key] = l
	} else if l.saw == saw && saw.version != "" {
		return
	}
	l.saw = saw
	now := stands(rec, pause, saw, wall)
	before := l.open
	var open []Span
	for _, s := range before {
		if i := slices.IndexFunc(now, s.is); i >= 0 {
			// A candidate may be listed after it has begun to lead.
			if s.learns(now[i]) {
				c.pending = append(c.pending, s)
			}
			open = append(open, s)
			now = slices.Delete(now, i, i+1)
		} else if s.Kind != SpanTerm || !remembers(rec, s.Token) {
			c.pending = append(c.pending, s.over(rec, wall))
		}
	}
	l.open = append(open, now...)
	c.pending = append(c.pending, now...)
	newest := l.past
	for _, t := range rec.Past {
		if t.Token > l.past {
			past := Span{Name: rec.Key, Kind: SpanTerm, NameKind: rec.Kind, Holder: t.Owner, Token: t.Token, From: t.From, Until: t.Until, Ended: t.Why}
			if i := slices.IndexFunc(before, past.is); i >= 0 {
				past.Session, past.Zone = before[i].Session, before[i].Zone
			}
			c.pending = append(c.pending, past)
			newest = max(newest, t.Token)
		}
	}
	l.past = newest
}

// stands returns the spans that a name is in now, without their ends.
func stands(rec store.Record, pause *api.Pause, saw sighting, wall time.Time) (all []Span) {
	add := func(kind SpanKind, holder string, token fence.Token, from time.Time, note string) {
		all = append(all, Span{Name: rec.Key, Kind: kind, Holder: holder, Token: token, From: from, Note: note, NameKind: rec.Kind})
	}
	switch {
	case rec.Kind == store.KindPool:
	case rec.Owner != "" && rec.Intervention == store.InterventionHandedOver:
		add(SpanHanded, rec.Owner, rec.Token, wall, "by "+rec.Note)
	case rec.Owner != "":
		add(SpanTerm, rec.Owner, rec.Token, rec.Acquired, "")
		all[len(all)-1].Session, all[len(all)-1].Zone = rec.Session, saw.zone
		if rec.Intervention == store.InterventionBroken {
			add(SpanBroken, rec.Owner, rec.Token, wall, rec.Note)
		}
	}
	if saw.ran {
		add(SpanExpired, rec.Owner, rec.Token, wall, "")
	}
	if rec.Kind.Shared() {
		if state, err := roster.StateOf(rec); err == nil {
			for _, h := range state.Held {
				add(SpanShare, h.Owner, h.Token, wall, "")
				all[len(all)-1].Session = h.Session
			}
		}
	}
	if pause != nil {
		add(SpanPaused, pause.By, 0, pause.Since, pause.Reason)
	}
	if saw.waits {
		add(SpanWaiting, "", 0, wall, "")
	}
	return all
}

// zoneOf returns where the holder of a name is, as far as it says.
func zoneOf(rec store.Record, zones map[candidacy]string) string {
	return cmp.Or(zones[candidacy{rec.Key, rec.Session}], rec.Info["zone"], rec.Info["region"])
}

// is reports whether two spans without an end are one. Of what was seen, the beginning is when it
// was seen first.
func (s Span) is(other Span) bool {
	return s.Kind == other.Kind && s.Token == other.Token && s.Holder == other.Holder &&
		(s.Kind != SpanPaused || s.From.UnixMilli() == other.From.UnixMilli())
}

// learns takes over what is known now and wasn't, and reports whether there is anything.
func (s *Span) learns(now Span) bool {
	before := *s
	s.NameKind, s.Session, s.Zone = cmp.Or(s.NameKind, now.NameKind), cmp.Or(s.Session, now.Session), cmp.Or(now.Zone, s.Zone)
	return *s != before
}

func remembers(rec store.Record, token fence.Token) bool {
	return slices.ContainsFunc(rec.Past, func(t store.Term) bool { return t.Token == token })
}

// over returns a span that is over by what the record says now.
func (s Span) over(rec store.Record, wall time.Time) Span {
	s.Until = wall
	if s.Kind != SpanTerm {
		return s
	}
	switch {
	case rec.Version == "":
		s.Ended = "its record was deleted"
	case len(rec.Past) > 0 && rec.Past[len(rec.Past)-1].Token > s.Token:
		// More than the record remembers have followed.
		s.Ended = "not known: seen by nobody"
		if first := rec.Past[len(rec.Past)-1].From; first.After(s.From) && first.Before(wall) {
			s.Until = first
		}
	default:
		s.Ended = "not known: its record was replaced"
	}
	return s
}

// resident has the board look at the store all the time, for nobody who watches.
func (b *board) resident() {
	b.bell.mu.Lock()
	b.bell.resident = 1
	b.bell.mu.Unlock()
	b.join()
}
