package model

import (
	"errors"
	"slices"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// step is one transition, as the story of a violation tells it.
type step struct {
	before *step
	format string
	args   []any
}

var (
	errTimeout = errors.New("no answer in time")
	errRefused = errors.New("refused")
)

// next returns every world that can follow w.
func (w *world) next(c *check) []*world {
	var all []*world
	add := func(n *world, format string, args ...any) {
		if n != nil {
			n.tidy()
			n.from = &step{before: w.from, format: format, args: args}
			all = append(all, n)
		}
	}
	add(w.tick(), "time passes")
	for i, p := range w.procs {
		if p.dead {
			continue
		}
		add(w.begin(c, i), "%s%d wants it", p.owner, i)
		add(w.look(c, i), "%s%d looks up", p.owner, i)
		add(w.repeat(c, i), "%s%d asks once more", p.owner, i)
		add(w.glance(i), "%s%d looks at the clock", p.owner, i)
		add(w.quit(c, i), "%s%d lets go", p.owner, i)
		add(w.crash(i), "%s%d crashes", p.owner, i)
		add(w.clone(i), "%s%d is cloned", p.owner, i)
		for to := range w.procs {
			add(w.hand(c, i, to), "%s%d hands over to %s", p.owner, i, w.procs[to].owner)
		}
	}
	for i, m := range w.wires {
		add(w.deliver(c, i, false), "%v", m)
		add(w.deliver(c, i, true), "%v, and will once more", m)
		add(w.refuse(i), "refused: %v", m)
	}
	add(w.breaks(), "an operator breaks the hold")
	return all
}

// tick lets time pass. Nobody has to notice: who doesn't look up is paused.
func (w *world) tick() *world {
	if w.left.Prompt && slices.ContainsFunc(w.procs, w.due) {
		return nil
	}
	n := *w
	n.time++
	return &n
}

// begin lets a process want the name.
func (w *world) begin(c *check, i int) *world {
	p := w.procs[i]
	if p.d.Hold.Key != "" || p.wants == 0 {
		return nil
	}
	if p.session >= 0 && w.now(p) >= w.procs[p.session].validUntil() {
		return nil
	}
	n, q := w.change(i)
	q.wants--
	if p.keeps {
		q.d = drive.Open(sessionKey, p.claim(), timing)
	} else {
		q.d = drive.Want(name, p.claim(), timing, false, p.past)
		if w.left.Patient && i == 1 {
			q.d.Hold.Patience = tick
		}
		q.d.Hold.Follow = w.left.Follow && i == 1
	}
	q.shown, q.wanted = protocol.Waiting, true
	n.run(c, q)
	return n
}

func (p *proc) claim() protocol.Claim {
	c := protocol.Claim{Owner: p.owner, TTL: ttl}
	if p.session >= 0 {
		c.Session = sessionKey
	}
	return c
}

// look lets a process act whose time has come, at any moment from then on: a later one is a pause.
func (w *world) look(c *check, i int) *world {
	p := w.procs[i]
	switch {
	case p.d.Hold.Key == "":
		return nil
	case p.asked != nil && w.due(p): // its time is over, or its connection broke
		n, q := w.change(i)
		n.outcome(c, q, store.Record{}, driver.Unknown(q.asked.Key, errTimeout))
		return n
	case p.asked == nil && p.wait != "-" && w.get(p.key()).Version != p.wait:
		return w.found(c, i, p.key())
	case p.asked == nil && p.also != "-" && w.get(sessionKey).Version != p.also:
		return w.found(c, i, sessionKey)
	case w.due(p):
		n, q := w.change(i)
		q.wait, q.also = "-", "-"
		q.d.Hold.Woke()
		n.run(c, q)
		return n
	case p.d.Hold.Phase == protocol.Held && p.session >= 0 && w.procs[p.session].validUntil() == clock.Ended:
		n, q := w.change(i)
		q.d.Hold.LoseSession()
		n.run(c, q)
		return n
	}
	return nil
}

// glance lets a program look at the clock before whoever renews its term does: the term is over
// then, whatever lands late.
func (w *world) glance(i int) *world {
	p := w.procs[i]
	if p.d.Hold.Phase != protocol.Held || p.validUntil() == clock.Ended || w.now(p) < p.validUntil() {
		return nil
	}
	n, q := w.change(i)
	if p.session >= 0 { // its session's term may be what is over
		n, _ = n.change(p.session)
		q = n.procs[i]
	}
	q.term.Over(n.now(q)).End()
	q.term.End()
	return n
}

// run asks a hold what to do until it has to wait.
func (w *world) run(c *check, p *proc) {
	for p.asked == nil {
		act := p.d.Next(w.env(p), p.wanted && w.kept(p))
		c.show(w, p)
		switch act.Kind {
		case protocol.Idle:
			p.sleep = clock.NoDeadline
			switch {
			case p.d.Hold.Phase == protocol.Leaving:
				continue // it was given up just now
			case p.d.Hold.Phase == protocol.Ended && p.d.Settle(w.env(p), w.kept(p)):
				continue
			case p.d.Hold.Phase == protocol.Ended:
				p.past = drive.After(&p.d.Hold)
				p.d = drive.Driver{}
				p.shared = false
			}
			return
		case protocol.Sleep:
			p.sleep = act.Until
			return
		case protocol.Wait:
			p.sleep, p.wait = act.Until, act.Version
			if act.Also != "" {
				p.also = act.AlsoVersion
			}
			return
		}
		p.turn++
		p.asked, p.again, p.copies = &act, act.Again, drive.Copies{}
		p.sleep = clock.NoDeadline
		w.send(p)
	}
}

// kept reports whether the session that is to keep what p holds still lives.
func (w *world) kept(p *proc) bool {
	return p.session < 0 || w.now(p) < w.procs[p.session].validUntil()
}

// outcome tells a hold what came of its request.
func (w *world) outcome(c *check, p *proc, rec store.Record, err error) {
	act := *p.asked
	p.asked = nil
	before, op := p.d.Hold.Phase, p.d.Hold.Doing()
	p.d.Hold.Tell(w.env(p), act, rec, err)
	c.took(before, op, act.Kind, err, p.d.Hold.Phase)
	c.show(w, p)
	w.run(c, p)
}

// deliver lets a message arrive: a request at the store, or an answer at the process.
func (w *world) deliver(c *check, i int, again bool) *world {
	m := w.wires[i]
	if again && (m.answer || m.act.Kind != protocol.Write || w.left.Twice == 0) {
		return nil
	}
	if m.answer {
		p := w.procs[m.to]
		n, q := w.change(m.to)
		n.wires = without(w.wires, i)
		if p.dead || p.turn != m.turn || p.asked == nil {
			return n // nobody listens
		}
		if over, err := q.copies.Answered(m.copy, *q.asked, m.err); over {
			n.outcome(c, q, m.rec, err)
		}
		return n
	}
	if m.act.Kind == protocol.Write && w.left.Writes == 0 {
		return nil
	}
	n := *w
	n.wires = without(w.wires, i)
	if again {
		n.left.Twice--
		n.wires = append(n.wires, m)
	}
	m.answer = true
	if m.act.Kind == protocol.Read {
		m.rec = n.get(m.act.Key)
	} else {
		m.rec, m.err = n.put(c, m.to, m.act.Rec)
	}
	m.act = protocol.Action{Kind: m.act.Kind}
	n.wires = append(n.wires, m)
	return &n
}

// put is the store.
func (w *world) put(c *check, writer int, rec store.Record) (store.Record, error) {
	i := slices.IndexFunc(w.rows, func(r row) bool { return r.rec.Key == rec.Key })
	switch {
	case i < 0 && rec.Version != "":
		return store.Record{}, driver.NotFound(rec.Key)
	case i >= 0 && w.rows[i].rec.Version != rec.Version:
		return store.Record{}, &store.ConflictError{Current: w.rows[i].rec}
	}
	w.left.Writes--
	rec.Version, rec.Past = w.stamp(), nil
	w.rows = slices.Clone(w.rows)
	if i < 0 {
		w.rows = append(w.rows, row{})
		i = len(w.rows) - 1
	}
	c.stored(w, writer, w.rows[i], rec)
	if rec.Intervention != "" && rec.Intervention != store.InterventionHandedOver {
		writer = w.rows[i].writer
	}
	w.rows[i] = row{rec, writer}
	return rec, nil
}

func (w *world) refuse(i int) *world {
	m := w.wires[i]
	if m.answer || w.left.Rejects == 0 {
		return nil
	}
	n := *w
	n.left.Rejects--
	n.wires = without(w.wires, i)
	m.answer, m.err, m.act = true, errRefused, protocol.Action{Kind: m.act.Kind}
	n.wires = append(n.wires, m)
	return &n
}

// quit lets the program let go: of what it holds, what it has lost, or what it waits for.
func (w *world) quit(c *check, i int) *world { return w.leave(c, i, "") }

func (w *world) hand(c *check, i, to int) *world {
	if !w.left.Handover || w.procs[to].owner == w.procs[i].owner || w.procs[to].keeps || w.procs[i].d.Hold.Phase != protocol.Held {
		return nil
	}
	return w.leave(c, i, w.procs[to].owner)
}

func (w *world) leave(c *check, i int, to string) *world {
	p := w.procs[i]
	if p.d.Hold.Key == "" || p.d.Hold.Phase == protocol.Leaving || (w.left.Stays && to == "" && p.d.Hold.Phase != protocol.Lost) {
		return nil
	}
	n, q := w.change(i)
	q.turn++
	q.wait, q.also = "-", "-"
	l := &leaving{n, c, q}
	if q.d.Hold.Phase == protocol.Waiting {
		l.cut()
		q.wanted = false
	} else {
		d, _ := drive.Leave(l, protocol.Exit{Why: protocol.WhyReleased, To: to})
		q.d = *d
	}
	n.run(c, q)
	return n
}

// leaving is a program that lets go.
type leaving struct {
	w *world
	c *check
	p *proc
}

// cut cuts a request short that is under way.
func (l *leaving) cut() {
	if asked := l.p.asked; asked != nil {
		l.p.asked = nil
		l.p.d.Hold.Tell(l.w.env(l.p), *asked, store.Record{}, driver.Unknown(asked.Key, errTimeout))
		l.c.show(l.w, l.p)
	}
}

func (l *leaving) Stop() {
	if l.p.term != nil {
		l.p.term.End()
	}
}

func (l *leaving) Retire() *drive.Driver {
	l.cut()
	if l.p.session >= 0 {
		l.p.d = drive.Resume(drive.Kept(l.p.d.Hold.Term), l.p.claim(), timing)
	}
	return &l.p.d
}

func (l *leaving) Env() protocol.Env { return l.w.env(l.p) }

func (w *world) crash(i int) *world {
	if w.left.Crashes == 0 || w.procs[i].d.Hold.Key == "" {
		return nil
	}
	n, q := w.change(i)
	n.left.Crashes--
	if q.term != nil {
		q.term.End()
	}
	*q = proc{id: q.id, owner: q.owner, dead: true, session: -1, wait: "-", also: "-", term: q.term}
	return n
}

// clone makes a second process out of the memory of the first.
func (w *world) clone(i int) *world {
	p := w.procs[i]
	if w.left.Clones == 0 || p.d.Hold.Key == "" || p.session >= 0 || p.keeps {
		return nil
	}
	n, q := w.change(i)
	n.left.Clones--
	q.shared, q.shareTo, q.kinship = true, n.now(q).Add(timing.Validity()), n.stamps
	twin := *q
	twin.id = len(n.procs)
	n.unshare(&twin)
	n.procs = append(n.procs, &twin)
	return n
}

// breaks lets an operator mark the hold, as drive.Break does. Under a session, the session is told
// first.
func (w *world) breaks() *world {
	rec := w.get(name)
	if w.left.Breaks == 0 || w.left.Writes < 2 || rec.Owner == "" || rec.Intervention != "" {
		return nil
	}
	n := *w
	n.left.Breaks--
	if rec.Session != "" {
		if told, needed := drive.Notify(n.get(sessionKey), rec, "op", "o"+n.stamp()); needed {
			n.set(told)
		}
	}
	n.set(protocol.Broken(rec, "op", ttl, "o"+n.stamp()))
	return &n
}

func (w *world) set(rec store.Record) {
	w.rows = slices.Clone(w.rows)
	i := slices.IndexFunc(w.rows, func(r row) bool { return r.rec.Key == rec.Key })
	rec.Version = w.stamp()
	w.rows[i].rec = rec
	w.left.Writes--
}

func without(all []wire, i int) []wire {
	return slices.Concat(all[:i], all[i+1:])
}
