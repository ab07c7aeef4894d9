package sim

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// client is one program that wants, holds and lets go of one name, again and again, as users of
// package lease do: what that does with goroutines is done here by events, with the same driver.
type client struct {
	n            *node
	key          string
	wantsSession bool
	served       bool                  // a server takes, renews and frees the name for it
	number       int                   // of such programs on its node
	session      *client               // that keeps its hold, or nil
	roster       *drive.Roster[*lease] // of what it keeps; nil unless it is a session

	run    *runner
	active bool   // it wants, holds or lets go of the name
	lease  *lease // its latest term
	shown  protocol.Phase

	deadline clock.Instant // as last shown
	// How many terms it was given, and how many times it was told of the end of one.
	term, told int
	working    bool
	tick       int
	gaveUp     clock.Instant // Waiting: when it loses patience
	since      int64         // true time at which it began to wait
}

// lease is one term of a client, as lease.Lease is.
type lease struct {
	c     *client
	token fence.Token
	term  drive.Term
	kept  store.Record // of one that a session keeps
}

// Name implements drive.Member.
func (l *lease) Name() string { return l.c.key }

// Token implements drive.Member.
func (l *lease) Token() fence.Token { return l.token }

// Stop implements drive.Program.
func (l *lease) Stop() { l.c.end(false) }

// Retire implements drive.Program.
func (l *lease) Retire() *drive.Driver {
	c := l.c
	c.run.cut()
	switch {
	case c.served:
		c.run = c.runner(drive.Named(c.key, c.owner(), l.token, 0, c.w().timing.Attempt, *c.n.past(c.key)))
		c.run.d.Hold.Timing = c.w().timing
	case c.session != nil:
		c.run = c.runner(drive.Resume(l.kept, c.claim(), c.w().timing))
	}
	return &c.run.d
}

// Env implements drive.Program.
func (l *lease) Env() protocol.Env { return l.c.run.env() }

// lost ends a lease that a session keeps.
func (l *lease) lost(cause protocol.Cause) {
	if l.c.lease == l {
		l.c.lost(cause)
	}
}

func (c *client) w() *World { return c.n.w }

func (c *client) isSession() bool { return c.roster != nil }

// token returns that of the latest term, 0 before the first.
func (c *client) token() fence.Token {
	if c.lease == nil {
		return 0
	}
	return c.lease.token
}

// validUntil is what lease.Lease shows as its deadline.
func (c *client) validUntil() clock.Instant {
	if c.lease == nil {
		return clock.Ended
	}
	return c.lease.term.Until()
}

func (c *client) valid() bool { return c.n.local() < c.validUntil() }

func (c *client) claim() protocol.Claim {
	claim := protocol.Claim{Owner: c.owner(), TTL: c.w().cfg.TTL}
	if c.session != nil {
		claim.Session = c.session.key
	}
	return claim
}

func (c *client) runner(d drive.Driver) *runner {
	return &runner{n: c.n, c: c, key: c.key, session: c.session, ofSession: c.isSession(), d: d}
}

// rest waits a little and then wants the name.
func (c *client) rest() {
	c.n.deliver(c.start)
}

func (c *client) start() {
	w := c.w()
	if c.active {
		return
	}
	c.session = nil
	if c.wantsSession {
		s := *c.n.sessionOf(c.served)
		if s == nil || !s.valid() {
			c.n.openSession(c.served)
			w.after(w.between(w.cfg.TTL/50, w.cfg.TTL/5), c.rest)
			return
		}
		c.session = s
	}
	try := w.rng.IntN(3) == 0
	past := c.n.memory.Recall(c.key)
	if c.served {
		past = *c.n.past(c.key)
	}
	d := drive.Want(c.key, c.claim(), w.timing, try, past)
	if w.cfg.Patient && c.n.id%2 == 1 {
		d.Hold.Patience = w.cfg.TTL / 10
	}
	if w.cfg.Follow && !c.served {
		d.Hold.Follow = w.rng.IntN(3) > 0
	}
	if w.cfg.Suppose {
		d.Hold.SupposeNew()
	}
	c.gaveUp = clock.NoDeadline
	if !w.calm && w.rng.IntN(4) == 0 {
		c.gaveUp = c.n.local().Add(w.between(0, 2*w.cfg.TTL))
	}
	w.logf("%s wants it%s", c, map[bool]string{true: ", without waiting"}[try])
	c.begin(d)
}

func (c *client) begin(d drive.Driver) {
	c.active, c.shown, c.since = true, protocol.Waiting, c.w().now
	c.run = c.runner(d)
	c.run.step()
}

// sessionOf returns the place of the session of the node's programs, or of those that a server
// serves.
func (n *node) sessionOf(served bool) **client {
	if served {
		return &n.away
	}
	return &n.session
}

func (n *node) openSession(served bool) {
	place := n.sessionOf(served)
	if s := *place; s != nil && s.active {
		return
	}
	n.opened++
	key := fmt.Sprintf(".session/%d/%d", n.id, n.opened)
	c := n.client(key, false)
	c.roster, c.served, c.number = &drive.Roster[*lease]{}, served, n.opened
	c.gaveUp = clock.NoDeadline
	*place = c
	c.begin(drive.Open(key, c.claim(), n.w.timing))
}

// look takes over what has become of the hold, as Acquire, the keeper and Release do, and reports
// whether the runner is to go on.
func (c *client) look(act protocol.Action) bool {
	d := &c.run.d
	h := &d.Hold
	switch c.shown {
	case protocol.Waiting:
		switch {
		case h.Phase == protocol.Held:
			c.acquired()
			return false
		case h.Phase == protocol.Waiting && act.Kind != protocol.Refuse:
			return true
		}
		if c.n.local() >= c.gaveUp {
			c.w().logf("%s loses patience", c)
		}
		c.settle()
		return false
	case protocol.Leaving:
		if h.Phase != protocol.Ended {
			return true
		}
		c.settle()
		return false
	}
	return c.keep()
}

// keep is what the keeper of a lease does after each step: it shows what has become of the hold.
func (c *client) keep() bool {
	d := &c.run.d
	d.Show(&c.lease.term)
	if d.Hold.Phase == protocol.Lost {
		c.lost(d.Hold.Cause)
		return false
	}
	if d.Hold.Deadline != c.deadline {
		c.w().check.extended(c)
		c.deadline = d.Hold.Deadline
		c.w().spans.extend(c)
	}
	if data := d.Notice(); data != nil {
		return c.notified(data)
	}
	return true
}

// notified ends the leases of a session that a notice names, and reports whether the session goes
// on.
func (c *client) notified(data []byte) bool {
	broken, err := c.roster.Told(data)
	if err != nil {
		c.lost(protocol.CauseBroken) // any lease of it may have been broken
		return false
	}
	for _, l := range broken {
		c.w().logf("%s learns that it was broken", l.c)
		l.lost(protocol.CauseBroken)
	}
	return true
}

// settle leaves to the background what is left to be done of a hold that has come to nothing, or
// was let go.
func (c *client) settle() {
	c.run.cut()
	if c.served {
		c.n.past(c.key).Look(&c.run.d.Hold)
		c.n.past(c.key).Orphan(&c.run.d.Hold)
	}
	c.run.settle()
	if c.session != nil && c.lease != nil && c.shown == protocol.Leaving {
		c.session.roster.Forget(c.lease)
	}
	c.shown = protocol.Ended
	c.finish()
}

// lost: the program learns that its term is over. It stops its work, and frees what may be left; or
// never calls again.
func (c *client) lost(cause protocol.Cause) {
	w := c.w()
	if c.shown == protocol.Held {
		w.logf("%s is lost: %s", c, causes[cause])
		w.check.lost(c, cause)
	}
	if !c.end(true) {
		return
	}
	if w.rng.IntN(4) == 0 {
		c.finish()
		return
	}
	l := c.lease
	w.after(w.between(0, w.cfg.TTL/4), func() {
		c.n.deliver(func() {
			if c.lease == l && c.active && c.shown == protocol.Lost {
				c.leave("")
			}
		})
	})
}

// leave releases the term, or hands it over.
func (c *client) leave(to string) {
	if !c.active || c.shown != protocol.Held && c.shown != protocol.Lost {
		return
	}
	if c.served {
		c.release()
		return
	}
	drive.Leave(c.lease, protocol.Exit{Why: protocol.WhyReleased, To: to})
	c.shown = protocol.Leaving
	c.run.step()
}

// finish: the program has done with the name, and after a rest wants it again.
func (c *client) finish() {
	w := c.w()
	c.run.hangUp()
	c.active, c.run.done = false, true
	if c.isSession() {
		if place := c.n.sessionOf(c.served); *place == c {
			*place = nil
		}
		c.n.clients = slices.DeleteFunc(c.n.clients, func(other *client) bool { return other == c })
		delete(w.byKey, c.key) // its clones' too: they are looked at through their nodes
		return
	}
	if w.calm && c.shown == protocol.Ended && w.check.served[c] {
		return // it has had its turn
	}
	w.after(w.between(w.cfg.TTL/100, w.cfg.TTL), c.rest)
}

func (c *client) String() string {
	if c.isSession() {
		return fmt.Sprintf("%s %s", c.n, c.key)
	}
	return fmt.Sprintf("%s %q", c.n, c.key)
}
