package sim

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// end tells the program that its term is over, as lease.Lease does, and reports whether it was
// told: once, whatever comes after.
func (c *client) end(lost bool) bool {
	w := c.w()
	if c.lease == nil || !c.lease.term.End() {
		return false
	}
	c.told++
	c.working = false
	if lost {
		c.shown = protocol.Lost
		w.Stats.Losses++
	} else {
		w.Stats.Releases++
		w.logf("%s lets go", c)
	}
	w.spans.end(c, lost)
	w.check.told(c)
	if c.isSession() {
		c.endLeases()
	}
	return true
}

// endLeases ends the leases of a session, and what is under way for some.
func (c *client) endLeases() {
	for _, l := range c.roster.Close() {
		l.lost(protocol.CauseSession)
	}
	for _, k := range slices.Clone(c.n.clients) {
		// Or it is about to hear.
		if k.session == c && k.active && k.shown == protocol.Waiting && c.w().rng.IntN(2) == 0 {
			k.run.interrupt()
		}
	}
	for _, r := range slices.Clone(c.n.settling) {
		if r.session == c {
			r.interrupt()
		}
	}
}

var causes = map[protocol.Cause]string{
	protocol.CauseExpired: "expired", protocol.CauseTaken: "taken", protocol.CauseBroken: "broken",
	protocol.CauseOutage: "store outage", protocol.CauseSession: "its session is over",
}

// acquired: the program is told that it holds the name, and starts to work.
func (c *client) acquired() {
	w, d := c.w(), &c.run.d
	l := &lease{c: c, token: d.Hold.Term.Token}
	switch {
	case c.session != nil:
		d.Begin(&l.term, &c.session.lease.term)
		l.kept = drive.Kept(d.Hold.Term)
		c.run.done = true // until it is let go
	case c.served:
		d.Begin(&l.term, nil)
	default:
		d.Begin(&l.term, nil)
		c.run.asked = protocol.Action{Kind: protocol.Sleep}
		c.run.arm(d.Hold.Due(), c.run.step)
	}
	c.lease, c.shown, c.deadline = l, protocol.Held, d.Hold.Deadline
	c.n.memory.Forget(c.key)
	w.logf("%s is held under token %d until %v from now", c, l.token, c.validUntil().Sub(c.n.local()))
	c.term++
	w.check.announced(c)
	w.spans.begin(c)
	switch {
	case c.isSession() && c.served:
		c.granted()
		return
	case c.isSession():
		c.lookOn()
		return
	}
	w.Stats.Terms++
	if c.served {
		c.granted()
	}
	if c.session != nil && c.enlisted() {
		return
	}
	c.working = true
	c.tick++
	c.work(c.tick, 1+w.rng.IntN(30))
}

// enlisted has the session keep the lease, and reports whether the lease is over by that.
func (c *client) enlisted() bool {
	e := c.session.roster.Enlist(c.lease)
	if e.Another {
		e.Older.lost(protocol.CauseTaken)
	}
	switch {
	case e.Over:
		c.lost(protocol.CauseSession)
	case e.Broken:
		c.lost(protocol.CauseBroken)
	}
	return e.Over || e.Broken
}

// work writes to the guarded resource now and then, while the lease is valid, and lets go in the
// end.
func (c *client) work(tick, steps int) {
	w := c.w()
	w.after(w.between(w.cfg.TTL/100, w.cfg.TTL/4), func() {
		c.n.deliver(func() {
			if c.tick != tick || !c.working {
				return
			}
			if c.valid() {
				w.write(c)
			} else if c.shown == protocol.Held {
				c.check()
				return
			}
			if steps > 0 {
				c.work(tick, steps-1)
				return
			}
			c.quit()
		})
	})
}

// check is lease.Lease.Check of a term whose deadline has passed: the program looks at the clock
// before the keeper does.
func (c *client) check() {
	switch over := c.lease.term.Over(c.n.local()); {
	case over == nil:
	case over != &c.lease.term:
		c.session.lost(protocol.CauseExpired)
		c.lost(protocol.CauseSession)
	default:
		c.lost(protocol.CauseExpired)
	}
}

// quit ends the term: by a release, or by handing the name over.
func (c *client) quit() {
	w := c.w()
	if c.shown != protocol.Held {
		return
	}
	to := ""
	if w.chance(w.cfg.Chance.HandOver, "hand-over") {
		if other := w.nodes[w.rng.IntN(len(w.nodes))]; other.owner != c.n.owner {
			to = other.owner
			w.Stats.Handovers++
		}
	}
	c.leave(to)
}

// write sends a request to what the name guards. It may be under way for long.
func (w *World) write(c *client) {
	token, owner, key := c.token(), c.n.owner, c.key
	d := w.delay()
	if d < w.cfg.TTL/300 { // as good as none: the guard has to agree with a valid lease
		w.check.write(c)
	}
	w.after(d, func() {
		g := w.guards[key]
		mark, err := g.mark.Admit(key, owner, token)
		w.Stats.Writes++
		if err != nil {
			w.Stats.Refused++
			w.logf("guard: %v", err)
			return
		}
		g.mark = mark
		g.accepted++
		w.check.accepted(key, token)
	})
}

func describe(before, now store.Record) string {
	switch {
	case now.Intervention != "":
		return fmt.Sprintf("%s is marked %s: %s, token %d", now.Key, now.Intervention, now.Owner, now.Token)
	case now.Owner == "":
		return fmt.Sprintf("%s is freed after token %d", now.Key, now.Token)
	case now.Token == before.Token && now.Owner == before.Owner && before.Intervention == "":
		return fmt.Sprintf("%s is renewed by %s, token %d", now.Key, now.Owner, now.Token)
	}
	return fmt.Sprintf("%s is taken by %s under token %d", now.Key, now.Owner, now.Token)
}
