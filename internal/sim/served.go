package sim

import (
	"fmt"

	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

// registry is what a server on a node remembers of names, as internal/grants does. Each node has one.
type registry map[string]*drive.Recollection

func (n *node) past(key string) *drive.Recollection {
	if n.registry[key] == nil {
		n.registry[key] = &drive.Recollection{}
	}
	return n.registry[key]
}

// serve says that what the runner does is a change that a server makes for a holder elsewhere, and whom it answers.
func (r *runner) serve(then func(*rules.Hold)) *runner {
	r.then = then
	return r
}

// answers reports whether a change is over, as [drive.Runner.Carry] does, and answers it.
func (r *runner) answers() bool {
	h := &r.d.Hold
	if !h.Renewed() && h.Phase != rules.Lost && h.Phase != rules.Ended && (h.Err == nil || h.InDoubt()) {
		return false
	}
	r.done = true
	if h.Err == nil {
		r.n.past(r.key).Look(h)
	}
	r.then(h)
	return true
}

// granted: a server has taken the name for the program, which counts on that by the clock of its node, and renews by requests.
func (c *client) granted() {
	c.n.past(c.key).Look(&c.run.d.Hold)
	c.n.past(c.key).Granted(c.run.d.Hold.Term)
	c.timed()
	c.renewals(c.lease)
}

// timed has the program notice the end of its validity.
func (c *client) timed() {
	c.run.arm(c.validUntil(), func() {
		if c.shown == rules.Held {
			c.check()
		}
	})
}

// renewals asks some server, again and again, to renew the term.
func (c *client) renewals(l *lease) {
	w := c.w()
	w.after(w.between(w.timing.Renew/2, w.timing.Renew), func() {
		c.n.deliver(func() {
			if c.lease == l && c.shown == rules.Held {
				c.renew(l)
				c.renewals(l)
			}
		})
	})
}

// renew asks a server to renew the term: that of its own node, or another one. What it counts on begins before it asked.
func (c *client) renew(l *lease) {
	w, sent := c.w(), c.n.local()
	at := c.n
	if w.rng.IntN(3) == 0 {
		at = w.live[w.rng.IntN(len(w.live))]
	}
	at.deliver(func() {
		d := drive.Named(c.key, c.owner(), l.token, 0, w.timing.Attempt, *at.past(c.key))
		r := &runner{n: at, key: c.key, d: d}
		at.settling = append(at.settling, r)
		r.serve(func(h *rules.Hold) {
			renewed, cause := h.Renewed(), h.Cause
			if at != c.n && w.chance(w.cfg.Chance.DropReply, "lost reply") {
				return
			}
			w.after(w.delay(), func() {
				c.n.deliver(func() {
					if c.lease != l || c.shown != rules.Held {
						return
					}
					switch until := sent.Add(w.timing.Validity()); {
					case !c.valid():
						c.check()
					case renewed && until > c.validUntil():
						w.check.extended(c)
						l.term.Extend(until)
						c.deadline = until
						w.spans.extend(c)
						c.timed()
					case cause != rules.NotLost:
						c.lost(cause)
					}
				})
			})
		}).step()
	})
}

// heir returns the program that waits for the name at the server of the node, and is next; nil if none is.
func (c *client) heir() *client {
	for _, k := range c.n.clients {
		if k.served && k != c && k.key == c.key && k.active && k.shown == rules.Waiting && !k.run.d.Hold.Try {
			return k
		}
	}
	return nil
}

// release has the server let go of the term, and begin that of the next with the same write.
func (c *client) release() {
	l, heir := c.lease, c.heir()
	exit := rules.Exit{Why: rules.WhyReleased}
	if heir != nil {
		claim := heir.claim()
		exit.Heir = &claim
	}
	drive.Leave(l, exit)
	c.shown = rules.Leaving
	c.run.serve(func(h *rules.Hold) {
		if h.Err != nil && h.InDoubt() {
			c.n.past(c.key).Orphan(h)
		}
		if heir != nil && h.Err == nil && h.Seen().Rec.Owner == heir.owner() {
			heir.inherit(h.Seen().Rec, h)
		}
		c.shown = rules.Ended
		c.finish()
	}).step()
}

// inherit: the term of c has begun with the write that ended the one before.
func (c *client) inherit(rec store.Record, h *rules.Hold) {
	if !c.active || c.shown != rules.Waiting {
		return // it has left in the meantime: the name is free after its TTL
	}
	c.run.cut()
	c.n.past(c.key).Orphan(&c.run.d.Hold) // what it has claimed itself was of a version that is gone
	c.run.d.Hold.Phase, c.run.d.Hold.Term = rules.Held, rec
	c.run.d.Hold.Deadline = h.LeftAt.Add(c.w().timing.Validity())
	if c.n.local() >= c.run.d.Hold.Deadline {
		c.shown = rules.Ended
		c.finish()
		return
	}
	c.w().count("heir")
	c.acquired()
}

// owner is under which id the program holds names.
func (c *client) owner() string {
	if c.served {
		return fmt.Sprintf("elsewhere/%d/%d", c.n.id, c.number)
	}
	return c.n.owner
}
