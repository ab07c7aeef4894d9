package sim

import (
	"errors"

	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

var errCancelled = errors.New("the call was cancelled")

// oddCall lets a program do what programs shouldn't, or seldom do: release what another part of it works under, give up while
// its request is under way, release twice, or after a loss, and close a session under its leases.
func (w *World) oddCall(n *node) {
	if len(n.clients) == 0 || n.paused {
		return
	}
	c := n.clients[w.rng.IntN(len(n.clients))]
	switch {
	case !c.active:
	case c.hold.Phase == rules.Held && c.isSession:
		w.odd(c, "session closed under its leases")
		c.close()
	case c.hold.Phase == rules.Held:
		w.odd(c, "released amid work")
		c.quit()
	case c.hold.Phase == rules.Waiting:
		w.odd(c, "given up at any moment")
		c.cut()
		c.leaveTwice()
	case !c.busy:
		w.odd(c, "released twice, or after a loss")
		c.leaveTwice()
	}
}

func (w *World) odd(c *client, what string) {
	w.count("odd call: " + what)
	w.logf("%s: %s", c, what)
}

func (c *client) leaveTwice() {
	c.stop(rules.WhyReleased, "")
	c.stop(rules.WhyReleased, "")
	c.op++ // no timer counts any more
	c.step()
}

// cut cuts a request short that is under way. Its outcome is taken for unknown.
func (c *client) cut() {
	if c.busy {
		c.outcome(store.Record{}, store.Unknown(c.key, errCancelled))
	}
}

// close ends a session, and all that it keeps: the leases first, as they rely on it, then its record.
func (c *client) close() {
	c.cut()
	if c.hold.Phase == rules.Held {
		c.endLeases()
		c.op++
		c.stop(rules.WhyReleased, "")
	}
	c.step()
}

// endLeases ends the leases of a session.
func (c *client) endLeases() {
	for _, k := range c.n.clients {
		if k.session == c && k.active && !rules.Off(rules.RuleSessionTold) {
			k.sessionEnded()
		}
	}
}
