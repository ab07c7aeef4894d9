package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// faults draws, second by second of true time, what goes wrong.
func (w *World) faults() {
	w.after(time.Second, func() {
		if w.calm {
			return
		}
		for _, n := range slices.Clone(w.live) {
			w.nodeFaults(n)
		}
		w.storeFaults()
		w.replication()
		w.operator()
		w.outsider()
		w.faults()
	})
}

func (w *World) nodeFaults(n *node) {
	ch := &w.cfg.Chance
	ttl := w.cfg.TTL
	if !n.paused && w.chance(ch.Pause, "pause") {
		n.stop(w.between(0, 3*ttl), false)
	}
	if !n.paused && w.chance(ch.Suspend, "suspension") {
		n.stop(w.between(0, 3*ttl), true)
	}
	if w.chance(ch.Rate, "clock rate changed") {
		n.setRate(w.rate())
		w.logf("%s: its clock runs at %+.1f %% now", n, float64(n.ratePPM-1e6)/1e4)
	}
	if w.cfg.WildWall && w.chance(ch.Wall, "wall clock step") {
		n.wall = w.between(-time.Hour, time.Hour)
		w.logf("%s: its wall clock is set, %v off", n, n.wall)
	}
	if w.chance(ch.Partition, "partition") {
		which := w.rng.IntN(3)
		n.mute, n.deaf = which != 1, which != 2
		w.logf("%s is cut off (sends nothing: %v, hears nothing: %v)", n, n.mute, n.deaf)
		d := w.between(0, 2*ttl)
		w.spans.fault(n.slot, w.now, w.now+int64(d), "cut off")
		w.after(d, func() { n.mute, n.deaf = false, false; w.logf("%s is connected again", n) })
	}
	if !w.calm && ch.OddCall > 0 && w.rng.Float64() < ch.OddCall {
		w.oddCall(n)
	}
	if len(w.nodes) < 12 && !n.paused && w.chance(ch.Clone, "clone") {
		w.clone(n)
	}
	if w.chance(ch.Crash, "crash") {
		w.crash(n)
	}
}

func (w *World) crash(n *node) {
	w.logf("%s crashes", n)
	w.bury(n)
	w.after(w.between(0, 2*w.cfg.TTL), func() {
		w.count("process restart")
		w.boot(n.slot)
	})
}

// bury ends a process at once.
func (w *World) bury(n *node) {
	w.spans.fault(n.slot, w.now, w.now, "crash")
	for _, c := range n.clients {
		if c.active && c.shown == protocol.Held {
			w.spans.end(c, true)
		}
		if c.run != nil {
			c.run.hangUp()
			c.run.done = true
		}
		c.active, c.working = false, false
	}
	for _, r := range n.settling {
		r.hangUp()
		r.done = true
	}
	w.remove(n)
}

// clone makes a second process out of the whole memory of the first: of its leases, its owner id,
// and its clock.
func (w *World) clone(n *node) {
	cp := *n
	cp.id, cp.inbox, cp.clients, cp.session, cp.settling = len(w.nodes), nil, nil, nil, nil
	cp.memory = n.memory.Clone()
	cp.registry, cp.watched = registry{}, nil
	for key, past := range n.registry {
		cp.registry[key] = &drive.Recollection{}
		*cp.registry[key] = *past
	}
	twin := map[*client]*client{}
	for _, c := range n.clients {
		k := *c
		k.n = &cp
		k.tick++
		if k.served { // who has a server hold the name is elsewhere, and not cloned
			k.lease, k.run, k.active, k.working, k.term, k.told = nil, nil, false, false, 0, 0
		}
		twin[c] = &k
		cp.clients = append(cp.clients, &k)
	}
	n.shared, cp.shared = w.nonces, w.nonces
	n.clonedAt, cp.clonedAt = w.now, w.now
	// What either relies on was sent before; so it ends within the validity, on the slowest clock.
	n.exempt = w.now + int64(float64(w.timing.Validity())/0.89)
	cp.exempt = n.exempt
	w.add(&cp)
	w.logf("%s is cloned: %s", n, &cp)
	w.spans.fault(n.slot, w.now, w.now, "clone")
	leases := map[*lease]*lease{}
	for _, c := range n.clients { // sessions are before what they keep only by chance
		if l := c.lease; l != nil && !c.served {
			leases[l] = &lease{c: twin[c], token: l.token, kept: l.kept}
			twin[c].lease = leases[l]
		}
	}
	for _, c := range n.clients {
		k := twin[c]
		if s, ok := twin[c.session]; ok { // else it is over, and had been taken out
			k.session = s
		}
		if c == n.session {
			cp.session = k
		}
		if k.lease != nil {
			c.lease.term.Copy(&k.lease.term, k.sessionTerm())
		}
		if c.roster != nil {
			k.roster = c.roster.Clone(func(l *lease) *lease { return leases[l] })
		}
	}
	for _, c := range n.clients {
		k := twin[c]
		if c.run != nil && !c.served {
			k.run = c.run.clone(&cp, k, k.session)
		}
		k.revive()
	}
	for _, r := range n.settling {
		s, ok := twin[r.session]
		if !ok {
			s = r.session
		}
		if !r.done && r.then == nil {
			b := r.clone(&cp, nil, s)
			cp.settling = append(cp.settling, b)
			b.revive()
		}
	}
}

// sessionTerm returns the term of the session that keeps what c holds, or nil.
func (c *client) sessionTerm() *drive.Term {
	if c.session == nil || c.session.lease == nil {
		return nil
	}
	return &c.session.lease.term
}

// revive lets a cloned program go on.
func (c *client) revive() {
	w := c.w()
	switch {
	case !c.active && c.isSession():
		return
	case !c.active:
		w.after(w.between(0, w.cfg.TTL), c.rest)
		return
	case c.session != nil && (c.shown == protocol.Held || c.shown == protocol.Lost): // nothing runs
	case c.shown == protocol.Lost:
	default:
		c.run.revive()
	}
	if c.shown == protocol.Lost {
		c.finish()
		return
	}
	if c.isSession() && c.shown == protocol.Held {
		c.lookOn()
	}
	if c.working {
		w.spans.begin(c)
		c.tick++
		c.work(c.tick, 20)
	}
}

func (w *World) storeFaults() {
	ch, s := &w.cfg.Chance, w.server
	if w.chance(ch.Outage, "store outage") {
		s.down = true
		w.logf("the store is down")
		d := w.between(0, 3*w.cfg.TTL/2)
		w.spans.fault(-1, w.now, w.now+int64(d), "outage")
		w.after(d, func() { s.down = false; w.logf("the store is up") })
	}
	if w.chance(ch.Restart, "store restart") {
		s.restart()
		w.disconnect()
		w.spans.fault(-1, w.now, w.now, "restart")
		w.logf("the store restarts; what was under way is lost")
	}
	if w.rng.IntN(20) == 0 {
		s.save()
	}
	if w.chance(ch.Wipe, "store wiped") {
		s.wipe()
		w.changedAll()
		w.spans.fault(-1, w.now, w.now, "wiped")
		w.check.forgot()
		w.logf("the store comes back empty")
	}
	if w.chance(ch.Restore, "store restored from a backup") {
		s.restore(w.now)
		w.changedAll()
		w.spans.fault(-1, w.now, w.now, "restored")
		w.check.forgot()
		w.logf("the store comes back from a backup")
	}
}

// operator breaks a lease, as drive.Break does: a session that keeps it is told first, then the
// record is marked, for long enough that the holder has met the mark or its validity is over.
func (w *World) operator() {
	if w.server.down || !w.chance(w.cfg.Chance.Break, "break") {
		return
	}
	key := w.keys[w.rng.IntN(len(w.keys))]
	rec := w.look(key)
	if rec.Owner == "" {
		return
	}
	w.spans.fault(-1, w.now, w.now, key+" broken")
	grace := rec.TTL
	if rec.Session != "" {
		if session := w.look(rec.Session); session.Owner == rec.Owner {
			if w.rng.IntN(4) == 0 { // the session as a whole: its key is a name, too
				w.count("break of a session")
				w.after(w.between(0, w.cfg.TTL/10), func() { w.mark(protocol.Broken(session, "operator", session.TTL, w.nonce())) })
				return
			}
			grace = max(grace, session.TTL)
			if told, needed := drive.Notify(session, rec, "operator", w.nonce()); needed {
				w.mark(told)
			}
		}
	}
	w.after(w.between(0, w.cfg.TTL/10), func() { w.breakTerm(rec, grace) })
}

// breakTerm marks what is held, and once more what a session keeps and somebody has touched
// meanwhile: it has been told.
func (w *World) breakTerm(rec store.Record, grace time.Duration) {
	w.mark(protocol.Broken(rec, "operator", grace, w.nonce()))
	now := w.server.rows[rec.Key].rec
	if now.Session != "" && now.Session == rec.Session && now.Token == rec.Token && now.Version != rec.Version {
		w.breakTerm(now, grace)
	}
}

func (w *World) changedAll() {
	for _, key := range w.keys {
		w.changed(key)
	}
	w.disconnect()
}

// operator stands for the operator where what processes see is taken down.
var operator = &node{id: -1}

// look is the operator's reading of a record.
func (w *World) look(key string) store.Record {
	read := protocol.Action{Kind: protocol.Read, Key: key}
	answered := w.called(operator, read)
	rec := w.server.get(key, w.now, false)
	answered(rec, nil)
	return rec
}

func (w *World) mark(rec store.Record) {
	before := w.server.rows[rec.Key]
	answered := w.called(operator, protocol.Action{Kind: protocol.Write, Key: rec.Key, Rec: rec})
	stored, err := w.server.put(rec, before.writer, w.now, false)
	answered(stored, err)
	if err == nil {
		w.logf("store: %s", describe(before.rec, stored))
		w.check.marked(stored)
		w.changed(stored.Key)
	}
}

// calmDown ends the faults: everything is connected, up and running, and stays so.
func (w *World) calmDown() {
	w.calm = true
	w.server.down, w.server.replica = false, nil
	w.logf("calm: no faults from here on")
	for _, n := range w.live {
		n.mute, n.deaf = false, false
		if w.cfg.BadRates {
			n.setRate(1e6)
		}
	}
	w.freeRevived()
	w.check.calmDown()
	// When what was under way has settled, one who holds something dies: that must not be noticed
	// too late.
	w.after(lastCrash*w.cfg.TTL, func() {
		for _, key := range w.keys {
			if all := w.check.holders(key); len(all) > 0 && len(w.live) > 1 {
				n := all[0].n
				w.logf("%s crashes, for good", n)
				w.bury(n)
				return
			}
		}
	})
}

// freeRevived has an operator free what a backup brought back under a session that lives, where
// nobody holds it: its holder let go of it after the backup was made, and has forgotten it. That is
// a limit (docs/bugs.md).
func (w *World) freeRevived() {
	for _, key := range w.keys {
		r := w.server.rows[key]
		if r.writer != restored || r.rec.Session == "" || len(w.check.holders(key)) > 0 {
			continue
		}
		if rec := w.look(key); w.look(rec.Session).Owner == rec.Owner {
			w.count("operator: frees what a backup brought back")
			w.mark(protocol.Freed(rec, protocol.WhyReleased, epoch.Add(duration(w.now)), "operator/"+key))
		}
	}
}

// lastCrash is how many TTLs after the faults have stopped the last process dies.
const lastCrash = 4
