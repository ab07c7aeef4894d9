package sim

import "github.com/leasehold/leasehold/internal/protocol"

// oddCall lets a program do what programs shouldn't, or seldom do: release what another part of it
// works under, give up while its request is under way, release twice, or after a loss, and close a
// session under its leases.
func (w *World) oddCall(n *node) {
	if len(n.clients) == 0 || n.paused {
		return
	}
	c := n.clients[w.rng.IntN(len(n.clients))]
	switch {
	case !c.active:
	case c.shown == protocol.Held && c.isSession():
		w.odd(c, "session closed under its leases")
		c.leave("")
	case c.shown == protocol.Held:
		w.odd(c, "released amid work")
		c.quit()
	case c.shown == protocol.Waiting:
		w.odd(c, "given up at any moment")
		c.gaveUp = n.local()
		c.run.interrupt()
	default:
		w.odd(c, "released twice, or after a loss")
		c.leave("")
		c.leave("")
	}
}

func (w *World) odd(c *client, what string) {
	w.count("odd call: " + what)
	w.logf("%s: %s", c, what)
}
