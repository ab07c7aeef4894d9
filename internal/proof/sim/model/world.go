package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Scope is a small world: who is in it, and how much may happen.
type Scope struct {
	Name     string
	Holders  int   // processes that want the name, each by a lease of its own
	Session  bool  // the first of them holds it under a session instead
	Rates    []int // of each process's clock, in percent; 100 where missing
	Writes   int   // done by the store
	Twice    int   // requests that arrive twice
	Copies   int   // requests that are sent once more beside the first
	Wants    int   // times that each process wants the name
	Crashes  int
	Clones   int
	Breaks   int
	Handover bool
	Orphan   bool // at first it is held under a session of a process that is gone
	Stays    bool // nobody lets go by itself
	Prompt   bool // nobody is paused: who has something to do does it before time passes
	Rejects  int  // requests that the store refuses
	Follow   bool // the second process waits for the name and the session that keeps it at once
	Patient  bool // the second process goes behind the others
}

// tick is one step of true time. A TTL is five of them.
const (
	tick = time.Second
	ttl  = 5 * tick
)

var timing = protocol.Timing{TTL: ttl, Margin: 0.25, Drift: 0.11, Renew: tick, Attempt: tick}

// world is a state. It is never changed: a step makes another one, which shares what it leaves
// alone.
type world struct {
	procs  []*proc
	rows   []row
	wires  []wire
	guard  uint64 // the highest token that a term ever began under
	closed bool   // a session's record was closed
	left   Scope  // what may still happen
	stamps int    // versions and nonces handed out
	time   int    // ticks of true time so far
	from   *step  // how it came about
}

// proc is one process with one hold.
type proc struct {
	id     int
	owner  string
	d      drive.Driver
	wants  int
	wanted bool             // nobody has given up what it waits for
	asked  *protocol.Action // the request under way
	again  clock.Instant    // when to send it once more; 0 for never
	copies drive.Copies
	turn   int           // counts requests: an answer to an earlier one is not heard
	sleep  clock.Instant // when it looks up, unless it hears something
	wait   string        // the version whose change it waits for; "-" when it doesn't
	// That of the session, if it waits for its change, too; "-" when it doesn't.
	also    string
	session int  // the process that keeps its lease, or -1
	keeps   bool // it is a session
	dead    bool
	shown   protocol.Phase
	term    *drive.Term   // what its program relies on; nil before it has held anything
	shared  bool          // cloned, or with a clone, and relying on what was held then
	shareTo clock.Instant // until when
	// Stamps that were handed out when it was last cloned: what they mark is the clone's, too.
	kinship int
	past    drive.Recollection
}

type row struct {
	rec    store.Record
	writer int
}

// wire is a message under way: a request, or an answer.
type wire struct {
	to     int // the process that asked
	turn   int
	copy   int // of the request
	act    protocol.Action
	answer bool
	rec    store.Record
	err    error
}

func (m wire) String() string {
	what := kinds[m.act.Kind]
	switch {
	case m.answer:
		return fmt.Sprintf("the answer to the %s of process %d arrives: %s", what, m.to, outcomeOf(m.err))
	case m.act.Kind == protocol.Write:
		return fmt.Sprintf("the %s of process %d arrives: owner %q, token %d, over version %q", what, m.to, m.act.Rec.Owner, m.act.Rec.Token, m.act.Rec.Version)
	}
	return fmt.Sprintf("the %s of process %d arrives", what, m.to)
}

func newWorld(s Scope) *world {
	w := &world{left: s}
	for i := range s.Holders {
		p := &proc{id: i, owner: string(rune('A' + i)), session: -1, wait: "-", also: "-", wants: s.Wants}
		w.procs = append(w.procs, p)
	}
	if s.Session {
		keeper := &proc{id: s.Holders, owner: "A", session: -1, wait: "-", also: "-", wants: 1, keeps: true}
		w.procs = append(w.procs, keeper)
		w.procs[0].session = s.Holders
	}
	if s.Orphan {
		gone := store.Record{Owner: "Z", Token: 1, TTL: ttl}
		session, held := gone, gone
		session.Key, session.Version, session.Nonce = sessionKey, w.stamp(), "z0"
		held.Key, held.Version, held.Nonce, held.Session = name, w.stamp(), "z0", sessionKey
		w.rows = []row{{session, -1}, {held, -1}}
		w.guard = 1
	}
	return w
}

const (
	name       = "x"
	sessionKey = ".s"
)

// now returns what the clock of p shows.
func (w *world) now(p *proc) clock.Instant {
	rate := 100
	if p.id < len(w.left.Rates) {
		rate = w.left.Rates[p.id]
	}
	return clock.Instant(int64(w.time) * int64(tick) * int64(rate) / 100)
}

func (p *proc) key() string {
	if p.keeps {
		return sessionKey
	}
	return name
}

func (w *world) get(key string) store.Record {
	for _, r := range w.rows {
		if r.rec.Key == key {
			return r.rec
		}
	}
	return store.Record{Key: key}
}

// change returns a copy of w in which process i may be changed.
func (w *world) change(i int) (*world, *proc) {
	n := *w
	n.procs = slices.Clone(w.procs)
	p := *w.procs[i]
	n.procs[i] = &p
	n.unshare(&p)
	return &n, &p
}

// unshare gives p a term of its own in this world, and with it what p keeps.
func (w *world) unshare(p *proc) {
	if p.term == nil {
		return
	}
	own := &drive.Term{}
	p.term.Copy(own, w.sessionTerm(p))
	p.term = own
	for i, q := range w.procs {
		if q.session == p.id && q.term != nil {
			k := *q
			k.term = &drive.Term{}
			q.term.Copy(k.term, own)
			w.procs[i] = &k
		}
	}
}

// sessionTerm returns the term of the session that keeps what p holds, or nil.
func (w *world) sessionTerm(p *proc) *drive.Term {
	if p.session < 0 {
		return nil
	}
	return w.procs[p.session].term
}

func (w *world) stamp() string {
	w.stamps++
	return strconv.Itoa(w.stamps)
}

func (w *world) env(p *proc) protocol.Env {
	env := protocol.Env{Now: w.now(p), Wall: time.Unix(0, 0), Nonce: func() string { return fmt.Sprintf("%c%s", 'a'+p.id, w.stamp()) }}
	if p.session >= 0 {
		env.Session = w.procs[p.session].validUntil()
	}
	return env
}

func (p *proc) validUntil() clock.Instant {
	if p.term == nil {
		return clock.Ended
	}
	return p.term.Until()
}

// relies reports whether the process may work.
func (w *world) relies(p *proc) bool {
	return !p.keeps && !p.dead && w.now(p) < p.validUntil()
}

// encoder writes states so that two that differ only in the names of versions and nonces come out
// the same.
type encoder struct {
	quantum time.Duration
	b       []byte
	one     []byte
	named   []string
}

func (e *encoder) name(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	i := slices.Index(e.named, s)
	if i < 0 {
		i = len(e.named)
		e.named = append(e.named, s)
	}
	return append(b, byte(i+1))
}

func newEncoder(s Scope) *encoder {
	e := &encoder{quantum: tick}
	if len(s.Rates) > 0 {
		e.quantum = tick / 100
	}
	return e
}

// hash tells states apart, whatever the time and the path by which they came about.
func (e *encoder) hash(w *world) uint64 {
	l := w.left
	e.named = e.named[:0]
	b := append(e.b[:0], byte(l.Writes), byte(l.Twice), byte(l.Crashes), byte(l.Clones), byte(l.Breaks), byte(l.Rejects), byte(l.Copies))
	b = binary.AppendUvarint(b, w.guard)
	for _, r := range w.rows {
		b = protocol.AppendRecord(b, &r.rec, e.name)
		b = append(append(b, byte(r.writer)), r.rec.Key...)
	}
	for _, p := range w.procs {
		b = e.proc(b, w, p)
	}
	var sum uint64 // messages are in no order
	known := len(e.named)
	for _, m := range w.wires {
		e.named = e.named[:known] // what messages alone name doesn't depend on their order either
		e.one = e.wire(e.one[:0], m)
		sum += fnv(e.one)
	}
	b = binary.AppendUvarint(b, sum)
	e.b = b
	return fnv(b)
}

func (e *encoder) proc(b []byte, w *world, p *proc) []byte {
	if p.dead {
		return append(b, 'd')
	}
	now := w.now(p)
	due := func(t clock.Instant) { b = protocol.AppendDue(b, t, now, e.quantum) }
	b = append(b, byte(p.wants), byte(p.shown))
	if p.d.Hold.Key == "" {
		b = append(b, 'n')
		if seen := &p.past.Seen; seen.Known {
			b = protocol.AppendRecord(append(b, 'k'), &seen.Rec, e.name)
			if seen.Rec.Owner != "" {
				b = binary.AppendUvarint(b, uint64(min(max(now.Sub(seen.Since), 0), ttl)/e.quantum))
			}
		}
		return p.past.AppendState(b, e.name)
	}
	b = p.d.AppendState(b, now, e.quantum, e.name)
	if p.wait != "-" {
		b = e.name(append(b, 'w'), p.wait)
	}
	if p.also != "-" {
		b = e.name(append(b, 'l'), p.also)
	}
	due(p.sleep)
	if p.d.Hold.Phase == protocol.Held {
		due(p.validUntil())
		if p.validUntil() == clock.Ended {
			b = append(b, 'o')
		}
	}
	if p.shared {
		due(p.shareTo)
	}
	if p.asked != nil {
		b = append(b, 'q', byte(p.asked.Kind))
		b = append(b, p.asked.Key...)
		due(p.asked.Until)
		if p.again != 0 {
			b = append(b, 'c')
			due(p.again)
		}
		b = p.copies.AppendState(b)
	}
	return b
}

func (e *encoder) wire(b []byte, m wire) []byte {
	b = append(b, byte(m.to), byte(m.act.Kind), byte(min(m.turn, 1)), byte(m.copy))
	if m.answer {
		b = append(b, 'a')
		if m.err != nil {
			b = append(b, outcomeOf(m.err)...)
			var conflict *store.ConflictError
			if errors.As(m.err, &conflict) {
				b = protocol.AppendRecord(b, &conflict.Current, e.name)
			}
		}
		return protocol.AppendRecord(b, &m.rec, e.name)
	}
	b = append(b, m.act.Key...)
	return protocol.AppendRecord(b, &m.act.Rec, e.name)
}

// tidy takes away the messages that nobody listens to and that change nothing: answers, reads,
// writes that name a version that is gone for ever, and second copies of one write.
func (w *world) tidy() {
	kept := make([]wire, 0, len(w.wires)+1)
	for _, m := range w.wires {
		p := w.procs[m.to]
		if !p.dead && p.asked != nil && p.turn == m.turn {
			kept = append(kept, m)
			continue
		}
		if m.answer || m.act.Kind != protocol.Write || w.left.Writes == 0 || m.act.Rec.Version != w.get(m.act.Rec.Key).Version {
			continue
		}
		m.turn, m.copy = 0, 0
		if !slices.ContainsFunc(kept, func(other wire) bool { return other.turn == 0 && sameWrite(other.act.Rec, m.act.Rec) }) {
			kept = append(kept, m)
		}
	}
	w.wires = kept
}

// sameWrite reports whether it doesn't matter which of two writes that name one version lands:
// copies of one, or two that close one session.
func sameWrite(a, b store.Record) bool {
	return a.Nonce == b.Nonce || (a.Key == sessionKey && b.Key == sessionKey && a.Owner == "" && b.Owner == "" && a.Version == b.Version)
}

func fnv(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}
