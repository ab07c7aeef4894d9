package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// registry is what a server on a node remembers of names, as internal/lessor does. Each node has
// one.
type registry map[string]*drive.Recollection

func (n *node) past(key string) *drive.Recollection {
	if n.registry[key] == nil {
		n.registry[key] = &drive.Recollection{}
	}
	return n.registry[key]
}

// serve says that what the runner does is a change that a server makes for a holder elsewhere, and
// whom it answers.
func (r *runner) serve(then func(*protocol.Hold)) *runner {
	r.then = then
	return r
}

// answers reports whether a change is over, as [drive.Runner.Carry] does, and answers it.
func (r *runner) answers() bool {
	h := &r.d.Hold
	if !h.Renewed() && h.Phase != protocol.Lost && h.Phase != protocol.Ended && (h.Err == nil || h.InDoubt()) {
		return false
	}
	r.done = true
	if h.Err == nil {
		r.n.past(r.key).Look(h)
	}
	r.then(h)
	return true
}

// granted: a server has taken the name for the program, which counts on that by the clock of its
// node, and renews by requests.
func (c *client) granted() {
	if c.isSession() {
		c.w().count("served: a session was opened")
	}
	c.n.past(c.key).Look(&c.run.d.Hold)
	c.n.past(c.key).Granted(c.run.d.Hold.Term)
	if c.session != nil {
		return // it lasts as long as its session
	}
	c.timed()
	c.renewals(c.lease)
}

// timed has the program notice the end of its validity.
func (c *client) timed() {
	c.run.arm(c.validUntil(), func() {
		if c.shown == protocol.Held {
			c.check()
		}
	})
}

// renewals asks some server, again and again, to renew the term.
func (c *client) renewals(l *lease) {
	w := c.w()
	w.after(w.between(w.timing.Renew/2, w.timing.Renew), func() {
		c.n.deliver(func() {
			if c.lease == l && c.shown == protocol.Held {
				c.renew(l)
				c.renewals(l)
			}
		})
	})
}

// renew asks a server to renew the term: that of its own node, or another one. What it counts on
// begins before it asked.
func (c *client) renew(l *lease) {
	w, sent := c.w(), c.n.local()
	at := c.n
	if w.rng.IntN(3) == 0 {
		at = w.live[w.rng.IntN(len(w.live))]
	}
	at.deliver(func() {
		d := drive.Named(c.key, c.owner(), l.token, 0, w.timing.Attempt, *at.past(c.key))
		d.Hold.Left = w.unreleased
		r := &runner{n: at, key: c.key, ofSession: c.isSession(), d: d}
		at.settling = append(at.settling, r)
		r.serve(func(h *protocol.Hold) {
			a := renewal{l: l, sent: sent, renewed: h.Renewed(), cause: h.Cause, notice: h.Notice}
			answer := func() {
				if at != c.n && w.chance(w.cfg.Chance.DropReply, "lost reply") {
					return
				}
				w.after(w.delay(), func() { c.n.deliver(func() { c.heard(a) }) })
			}
			if a.renewed && c.isSession() {
				at.lookFor(r, c.members(), &a, answer)
				return
			}
			answer()
		}).step()
	})
}

// renewal is the answer to one.
type renewal struct {
	l       *lease
	sent    clock.Instant
	renewed bool
	cause   protocol.Cause
	// Of a session: what it is told, and what of that which it keeps is lost.
	notice []byte
	lost   map[*lease]protocol.Cause //
}

// heard: the program hears of a renewal.
func (c *client) heard(a renewal) {
	w, l := c.w(), a.l
	if c.lease != l || c.shown != protocol.Held {
		return
	}
	switch until := a.sent.Add(w.timing.Validity()); {
	case !c.valid():
		c.check()
		return
	case a.renewed && until > c.validUntil():
		w.check.extended(c)
		l.term.Extend(until)
		c.deadline = until
		w.spans.extend(c)
		c.timed()
	case a.cause != protocol.NotLost:
		c.lost(a.cause)
		return
	}
	if !c.isSession() {
		return
	}
	if a.notice != nil {
		w.count("served: a break is told")
		if !c.notified(a.notice) {
			return
		}
	}
	for _, k := range c.members() {
		if cause := a.lost[k]; cause != protocol.NotLost {
			w.count("served: an outsider's deed is told")
			k.lost(cause)
		}
	}
}

// members are the leases of a session, in order.
func (c *client) members() []*lease {
	all := c.roster.Members()
	slices.SortFunc(all, func(a, b *lease) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// lookFor has a server look at the records of what a session keeps, as its renewal names that, and
// then calls answer: when all was read, or a twelfth of the TTL later.
func (n *node) lookFor(r *runner, leases []*lease, a *renewal, answer func()) {
	w, left, told := n.w, len(leases), false
	tell := func() {
		if !told {
			told = true
			answer()
		}
	}
	for _, l := range leases {
		read := protocol.Action{Kind: protocol.Read, Key: l.Name()}
		answered := w.called(n, read)
		w.transmit(n, l.Name(), false, func() (store.Record, error) { return w.apply(r, read) }, func(rec store.Record, err error) {
			answered(rec, err)
			if err != nil {
				return
			}
			if cause, why := protocol.Ousted(rec, l.kept); cause != protocol.NotLost && !told {
				w.logf("a server looks at the record of %s: %v", l.c, why)
				if a.lost == nil {
					a.lost = map[*lease]protocol.Cause{}
				}
				a.lost[l] = cause
			}
			if left--; left == 0 {
				tell()
			}
		})
	}
	if len(leases) == 0 {
		tell()
		return
	}
	w.after(w.cfg.TTL/12, func() { n.deliver(tell) })
}

// unreleased is what is left to be told of a notice: the leases that it names and that are still
// held. The server's reads are left out: they change nothing.
func (w *World) unreleased(notice []byte) []byte {
	broken, err := drive.ReadNotice(notice)
	if err != nil {
		return notice
	}
	for key, token := range broken {
		if row := w.server.rows[key]; row.rec.Owner == "" || row.rec.Token != token {
			delete(broken, key)
		}
	}
	return drive.WriteNotice(broken)
}

// letGo has the server let go, until that is certain, of a lease that a session would keep, for as
// long as it lives.
func (n *node) letGo(s *client, key, owner string, token fence.Token) {
	w := n.w
	w.after(w.timing.Renew, func() {
		n.deliver(func() {
			if !s.valid() {
				return
			}
			r := &runner{n: n, key: key, d: drive.Named(key, owner, token, 0, w.timing.Attempt, *n.past(key))}
			r.d.Hold.Stop(r.env(), protocol.Exit{Why: protocol.WhyGivenUp, By: n.local().Add(drive.Patience(w.timing))})
			n.settling = append(n.settling, r)
			r.serve(func(h *protocol.Hold) {
				if h.Err != nil && !errors.Is(h.Err, store.ErrConflict) {
					n.letGo(s, key, owner, token)
				}
			}).step()
		})
	})
}

// heir returns the program that waits for the name at the server of the node, and is next; nil if
// none is.
func (c *client) heir() *client {
	for _, k := range c.n.clients {
		if k.served && k != c && k.key == c.key && k.active && k.shown == protocol.Waiting && !k.run.d.Hold.Try {
			return k
		}
	}
	return nil
}

// release has the server let go of the term, and begin that of the next with the same write.
func (c *client) release() {
	if c.isSession() {
		c.w().count("served: a session was closed")
	}
	l, heir := c.lease, c.heir()
	exit := protocol.Exit{Why: protocol.WhyReleased}
	var keeps *client // the session that keeps what the heir gets
	if heir != nil {
		claim := heir.claim()
		exit.Heir, keeps = &claim, heir.session
	}
	drive.Leave(l, exit)
	c.shown = protocol.Leaving
	c.run.serve(func(h *protocol.Hold) {
		if h.Err != nil && h.InDoubt() {
			c.n.past(c.key).Orphan(h)
			heir.waitAnew(keeps)
		}
		if heir != nil && h.Err == nil && h.Seen().Rec.Owner == heir.owner() {
			heir.inherit(h.Seen().Rec, h, keeps)
		}
		if c.session != nil {
			c.session.roster.Forget(l)
			if h.Err != nil && !errors.Is(h.Err, store.ErrConflict) {
				c.n.letGo(c.session, c.key, c.owner(), l.token)
			}
		}
		c.shown = protocol.Ended
		c.finish()
	}).step()
}

// waitAnew has the server begin anew to take the name for c, which may be nil: a write that may
// have landed may have given it the name.
func (c *client) waitAnew(session *client) {
	if c == nil || !c.active || c.shown != protocol.Waiting || c.session != session {
		return
	}
	c.run.cut()
	if c.shown != protocol.Waiting || c.run.d.Hold.Phase != protocol.Waiting {
		return
	}
	c.n.past(c.key).Orphan(&c.run.d.Hold)
	c.run = c.runner(drive.Want(c.key, c.claim(), c.w().timing, false, *c.n.past(c.key)))
	c.run.step()
}

// inherit: the term of c has begun with the write that ended the one before.
func (c *client) inherit(rec store.Record, h *protocol.Hold, session *client) {
	if !c.active || c.shown != protocol.Waiting || c.session != session {
		if session != nil {
			c.n.letGo(session, c.key, rec.Owner, rec.Token)
		}
		return // it has left in the meantime: the name is free after its TTL
	}
	c.run.cut()
	// What it has claimed itself was of a version that is gone.
	c.n.past(c.key).Orphan(&c.run.d.Hold)
	c.run.d.Hold.Phase, c.run.d.Hold.Term = protocol.Held, rec
	c.run.d.Hold.Deadline = h.LeftAt.Add(c.w().timing.Validity())
	if c.n.local() >= c.run.d.Hold.Deadline || c.session != nil && !c.session.valid() {
		c.shown = protocol.Ended
		c.finish()
		return
	}
	c.w().count("heir")
	c.acquired()
}

// owner is under which id the program holds names.
func (c *client) owner() string {
	switch {
	case c.served && c.session != nil:
		return c.session.owner()
	case c.served && c.isSession():
		return fmt.Sprintf("away/%d/%d", c.n.id, c.number)
	case c.served:
		return fmt.Sprintf("elsewhere/%d/%d", c.n.id, c.number)
	}
	return c.n.owner
}

// DrawServed returns the configuration of a seed in a world with sessions at servers, every other
// one with an outsider.
func DrawServed(seed uint64) Config {
	c := Draw(seed).WithServedSessions()
	if seed%2 == 0 {
		c = c.WithOutsiders()
	}
	return c
}

// WithServedSessions returns c with programs whose leases are kept by sessions that servers open,
// renew and close for them. Such programs aren't cloned: whoever has a server hold a name is
// elsewhere.
func (c Config) WithServedSessions() Config {
	c.Served, c.Sessions, c.Away = true, true, true
	c.Chance.Clone = 0
	return c
}
