package sim

import (
	"fmt"
	"maps"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

// show takes note of a change of the hold's phase, as a program is told of it.
func (c *client) show() {
	w, h := c.w(), &c.hold
	if h.Notice != nil {
		c.noticed(h.Notice)
		h.Notice = nil
	}
	if h.Phase == rules.Held && c.shown == rules.Held && h.Deadline != c.deadline {
		w.check.extended(c)
		c.deadline = h.Deadline
		w.spans.extend(c)
	}
	if h.Phase == c.shown {
		return
	}
	c.shown = h.Phase
	switch h.Phase {
	case rules.Held:
		c.acquired()
	case rules.Lost:
		w.logf("%s is lost: %s", c, causes[h.Cause])
		w.check.lost(c)
		c.working = c.working && rules.Off(rules.RuleStopFirst)
		c.end(true)
	case rules.Leaving, rules.Ended:
		c.end(false)
	}
}

// end tells the program that its term is over, as lease.Lease does: once, whatever comes after.
func (c *client) end(lost bool) {
	w := c.w()
	if c.term == 0 || c.told == c.term && !rules.Off(rules.RuleToldOnce) {
		return
	}
	c.told++
	if lost {
		w.Stats.Losses++
	} else {
		w.Stats.Releases++
		w.logf("%s lets go", c)
	}
	w.spans.end(c, lost)
	w.check.told(c)
}

var causes = map[rules.Cause]string{
	rules.CauseExpired: "expired", rules.CauseTaken: "taken", rules.CauseBroken: "broken",
	rules.CauseOutage: "store outage", rules.CauseSession: "its session is over",
}

// acquired: the program is told that it holds the name, and starts to work.
func (c *client) acquired() {
	w := c.w()
	w.logf("%s is held under token %d until %v from now", c, c.hold.Term.Token, c.validUntil().Sub(c.n.local()))
	c.deadline = c.hold.Deadline
	c.term++
	w.check.announced(c)
	w.spans.begin(c)
	if c.isSession {
		return
	}
	w.Stats.Terms++
	if c.session != nil { // from here on only the session's validity counts
		c.hold.Deadline, c.deadline = clock.Never, clock.Never
	}
	if c.session != nil && c.session.brokenHere[c.key] == c.hold.Term.Token {
		c.lose(rules.CauseBroken) // the notice came before the claim's answer
		return
	}
	c.working = true
	c.tick++
	c.work(c.tick, 1+w.rng.IntN(30))
}

// work writes to the guarded resource now and then, while the lease is valid, and lets go in the end.
func (c *client) work(tick, steps int) {
	w := c.w()
	w.after(w.between(w.cfg.TTL/100, w.cfg.TTL/4), func() {
		c.n.deliver(func() {
			if c.tick != tick || !c.working {
				return
			}
			if c.valid() {
				w.write(c)
			} else if c.hold.Phase == rules.Held {
				return // the keeper is about to notice
			}
			if steps > 0 {
				c.work(tick, steps-1)
				return
			}
			c.quit()
		})
	})
}

// quit ends the term: by a release, or by handing the name over.
func (c *client) quit() {
	w := c.w()
	if c.hold.Phase != rules.Held {
		return
	}
	to := ""
	if w.chance(w.cfg.Chance.HandOver, "hand-over") {
		if other := w.nodes[w.rng.IntN(len(w.nodes))]; other.owner != c.n.owner {
			to = other.owner
			w.Stats.Handovers++
		}
	}
	c.cut()
	if c.hold.Phase == rules.Held {
		c.op++ // no timer counts any more
		c.stop(rules.WhyReleased, to)
	}
	c.step()
}

// write sends a request to what the name guards. It may be under way for long.
func (w *World) write(c *client) {
	token, owner, key := c.hold.Term.Token, c.n.owner, c.key
	d := w.delay()
	if d < w.cfg.TTL/300 { // as good as none: the guard has to agree with a valid lease
		w.check.write(c)
	}
	w.after(d, func() {
		g := w.guards[key]
		if rules.Off(rules.RuleGuard) {
			g.mark = fence.Mark{}
		}
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

// noticed ends the leases that an operator broke, which the session is told by a notice.
func (c *client) noticed(data []byte) {
	for _, k := range c.n.clients {
		if k.session == c && k.active && k.hold.Phase == rules.Held && parse(data)[k.key] == k.hold.Term.Token {
			k.broken()
		}
	}
	if !rules.Off(rules.RuleEarlyNotice) {
		c.brokenHere = maps.Clone(c.brokenHere)
		if c.brokenHere == nil {
			c.brokenHere = map[string]fence.Token{}
		}
		maps.Copy(c.brokenHere, parse(data))
	}
}

// broken: the session of c has learned that c's lease was broken.
func (c *client) broken() {
	c.w().logf("%s learns that it was broken", c)
	c.lose(rules.CauseBroken)
	if !c.busy {
		c.idle()
	}
}

// lose ends a term that a session keeps.
func (c *client) lose(cause rules.Cause) {
	c.hold.LoseSession()
	c.hold.Cause = cause
	c.show()
}

func describe(before, now store.Record) string {
	switch {
	case now.Mark != "":
		return fmt.Sprintf("%s is marked %s: %s, token %d", now.Key, now.Mark, now.Owner, now.Token)
	case now.Owner == "":
		return fmt.Sprintf("%s is freed after token %d", now.Key, now.Token)
	case now.Token == before.Token && now.Owner == before.Owner && before.Mark == "":
		return fmt.Sprintf("%s is renewed by %s, token %d", now.Key, now.Owner, now.Token)
	}
	return fmt.Sprintf("%s is taken by %s under token %d", now.Key, now.Owner, now.Token)
}
