package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// check collects what a search finds: violations, and the transitions of a hold that were taken.
type check struct {
	wrong string // of the step at hand
	taken map[Transition]uint64
}

// Transition is what one outcome did to a hold.
type Transition struct {
	From    protocol.Phase
	Op      protocol.Op
	Kind    protocol.Kind
	Outcome string
	To      protocol.Phase
}

func (t Transition) String() string {
	return fmt.Sprintf("%s %s: %s %s -> %s", phases[t.From], ops[t.Op], kinds[t.Kind], t.Outcome, phases[t.To])
}

var (
	phases = []string{"waiting", "held", "lost", "leaving", "ended"}
	ops    = []string{"nothing", "claim", "fence", "vacate", "renew", "leave"}
	kinds  = []string{"", "read", "write", "wait"}
)

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, store.ErrConflict):
		return "conflict"
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	case errors.Is(err, store.ErrUnknownOutcome):
		return "unknown"
	}
	return "refused"
}

func (c *check) took(from protocol.Phase, op protocol.Op, kind protocol.Kind, err error, to protocol.Phase) {
	c.taken[Transition{from, op, kind, outcomeOf(err), to}]++
}

func (c *check) violated(format string, args ...any) {
	if c.wrong == "" {
		c.wrong = fmt.Sprintf(format, args...)
	}
}

// show takes note of a change of a hold's phase.
func (c *check) show(w *world, p *proc) {
	h := &p.d.Hold
	if data := p.d.Notice(); data != nil {
		w.told(c, p, data)
	}
	if h.Phase == protocol.Held && p.shown == protocol.Held && p.session < 0 {
		before := p.term.Until()
		p.d.Show(p.term)
		if p.term.Until() != before && w.now(p) >= before {
			c.violated("%s%d: a hold that had ended goes on", p.owner, p.id)
		}
	}
	if h.Phase == p.shown {
		return
	}
	p.shown = h.Phase
	if h.Phase == protocol.Held {
		if p.session < 0 && w.now(p) >= h.Deadline || p.session >= 0 && w.now(p) >= w.procs[p.session].validUntil() {
			c.violated("%s%d: a hold is announced that is over", p.owner, p.id)
		}
		p.term = &drive.Term{}
		p.d.Begin(p.term, w.sessionTerm(p))
		if p.session >= 0 {
			h.Deadline = clock.NoDeadline
		}
	} else if p.term != nil {
		p.term.End()
	}
}

// member is a lease that a session keeps.
type member struct {
	proc  int
	token fence.Token
}

func (member) Name() string         { return name }
func (m member) Token() fence.Token { return m.token }

// told ends the lease of a session that an operator broke.
func (w *world) told(c *check, keeper *proc, data []byte) {
	var kept drive.Roster[member]
	for i, p := range w.procs {
		if p.session == keeper.id && p.d.Hold.Key != "" && p.d.Hold.Phase == protocol.Held {
			kept.Enlist(member{i, p.d.Hold.Term.Token})
		}
	}
	broken, err := kept.Told(data)
	if err != nil {
		c.violated("a notice that can't be read: %v", err)
	}
	for _, m := range broken {
		q := *w.procs[m.proc]
		w.unshare(&q)
		q.d.Hold.LoseSession()
		w.procs[m.proc] = &q
		c.show(w, &q)
		q.sleep = w.now(&q)
	}
}

// stored is told each write of a process that the store did.
func (c *check) stored(w *world, writer int, before row, rec store.Record) {
	if rec.Key == sessionKey {
		if rec.Owner == "" {
			w.closed = true
			for _, p := range w.procs {
				if p.keeps && writer != p.id && !p.dead && w.now(p) < p.validUntil() {
					c.violated("a session that is valid is closed by another")
				}
			}
		} else if w.closed {
			c.violated("a session that was closed is renewed")
		}
		return
	}
	switch {
	case rec.Owner == "" && before.rec.Owner != "" && before.writer != writer && !kin(w.procs[writer], before.rec) && w.relied(before.rec):
		c.violated("%s%d frees the term of %s", w.procs[writer].owner, writer, before.rec.Owner)
	case rec.Owner == "", rec.Token == before.rec.Token && rec.Owner == before.rec.Owner && before.rec.Owner != "":
	case uint64(rec.Token) <= w.guard:
		c.violated("a term begins under token %d, after token %d", rec.Token, w.guard)
	}
	w.guard = max(w.guard, uint64(rec.Token))
}

// relied reports whether anyone may rely on the term in rec. Who gives up a claim on an abandoned
// record frees it.
func (w *world) relied(rec store.Record) bool {
	return slices.ContainsFunc(w.procs, func(p *proc) bool { return w.relies(p) && p.d.Hold.Term.Token == rec.Token })
}

// kin reports whether rec was written, or about to be, when p was cloned: then it is p's as well.
func kin(p *proc, rec store.Record) bool {
	base, _, _ := strings.Cut(rec.Nonce, "+")
	stamp, err := strconv.Atoi(base[1:])
	return err == nil && rec.Owner == p.owner && stamp <= p.kinship
}

// world holds a state against the invariants.
func (c *check) world(w *world) {
	var holder *proc
	for _, p := range w.procs {
		if p.dead || !w.relies(p) {
			continue
		}
		if p.shared && w.now(p) < p.shareTo {
			continue
		}
		if holder != nil {
			c.violated("%s%d (token %d) and %s%d (token %d) are valid at one instant", holder.owner, holder.id, holder.d.Hold.Term.Token, p.owner, p.id, p.d.Hold.Term.Token)
		}
		holder = p
	}
}
