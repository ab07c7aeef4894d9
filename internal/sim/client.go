package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

// client is one program that wants, holds and lets go of one name, again and again. It drives a rules.Hold as the lease
// package does: one thing at a time, each outcome told.
type client struct {
	n            *node
	key          string
	wantsSession bool
	session      *client // that keeps its hold, or nil
	isSession    bool

	hold     rules.Hold
	active   bool                      // it has a hold that has not ended
	busy     bool                      // a request is under way
	asked    rules.Action              // that request
	answered func(store.Record, error) // takes down its answer
	op       int                       // number of the request or timer that counts
	due      clock.Instant
	onDue    func()
	polling  string // the version that it waits to see changed
	polls    int    // the op for which a poll is under way

	brokenHere map[string]fence.Token // of a session: leases that it was told were broken
	shown      rules.Phase
	deadline   clock.Instant // as last shown
	term, told int           // how many terms it was given, and how many times it was told of the end of one
	working    bool
	tick       int
	gaveUp     clock.Instant // Waiting: when it loses patience
	since      int64         // true time at which it began to wait
}

var errTimeout = errors.New("no answer in time")

func (c *client) w() *World { return c.n.w }

func (c *client) env() rules.Env {
	env := rules.Env{Now: c.n.local(), Wall: c.n.wallClock(), Nonce: c.w().nonce, Jitter: c.w().rng.Float64()}
	if c.session != nil {
		env.Session = c.session.validUntil()
	}
	return env
}

// validUntil is what lease.Lease shows as its deadline.
func (c *client) validUntil() clock.Instant {
	if !c.active || c.hold.Phase != rules.Held {
		return clock.Always
	}
	if c.session != nil {
		return min(c.hold.Deadline, c.session.validUntil())
	}
	return c.hold.Deadline
}

func (c *client) valid() bool { return c.n.local() < c.validUntil() }

// rest waits a little and then wants the name.
func (c *client) rest() {
	c.n.deliver(c.start)
}

func (c *client) start() {
	w := c.w()
	if c.active {
		return
	}
	if c.wantsSession {
		if c.n.session == nil || !c.n.session.valid() {
			c.n.openSession()
			w.after(w.between(w.cfg.TTL/50, w.cfg.TTL/5), c.rest)
			return
		}
		c.session = c.n.session
	}
	m := c.n.memory[c.key]
	claim := rules.Claim{Owner: c.n.owner, TTL: w.cfg.TTL}
	if c.session != nil {
		claim.Session = c.session.key
	}
	c.hold = rules.New(c.key, claim, w.timing, w.rng.IntN(3) == 0, m.seen, m.mine)
	if w.cfg.Patient && c.n.id%2 == 1 {
		c.hold.Patience = w.cfg.TTL / 10
	}
	if w.cfg.Suppose {
		c.hold.SupposeNew()
	}
	c.gaveUp = clock.Never
	if !w.calm && w.rng.IntN(4) == 0 {
		c.gaveUp = c.n.local().Add(w.between(0, 2*w.cfg.TTL))
	}
	c.begin()
	w.logf("%s wants it%s", c, map[bool]string{true: ", without waiting"}[c.hold.Try])
}

func (c *client) begin() {
	c.active, c.busy, c.polling, c.shown, c.since = true, false, "", rules.Waiting, c.w().now
	c.step()
}

func (n *node) openSession() {
	if n.session != nil && n.session.active {
		return
	}
	n.opened++
	key := fmt.Sprintf(".session/%d/%d", n.id, n.opened)
	c := n.client(key, false)
	c.isSession = true
	c.hold = rules.NewSession(key, rules.Claim{Owner: n.owner, TTL: n.w.cfg.TTL}, n.w.timing)
	c.gaveUp = clock.Never
	n.session = c
	c.begin()
}

// step asks the hold what to do until it has to wait for something.
func (c *client) step() {
	for c.active && !c.busy && !c.n.dead {
		if c.hold.Phase == rules.Waiting && c.n.local() >= c.gaveUp {
			c.w().logf("%s loses patience", c)
			c.stop(rules.WhyGivenUp, "")
		}
		if c.session != nil && c.hold.Phase == rules.Waiting && !c.session.valid() {
			c.stop(rules.WhyGivenUp, "")
		}
		if c.session != nil && c.hold.Phase == rules.Leaving && !c.session.valid() {
			c.finish() // what the session kept has ended with it
			return
		}
		act := c.hold.Next(c.env())
		c.show()
		switch act.Kind {
		case rules.Idle:
			c.idle()
			return
		case rules.Refuse:
			c.hold.Stop(c.env(), rules.Exit{})
			c.finish()
			return
		case rules.Sleep:
			c.arm(min(act.Until, c.patience()), c.woke)
			return
		case rules.Wait:
			c.polling = act.Version
			c.arm(min(act.Until, c.patience()), c.woke)
			c.poll()
			return
		default:
			c.send(act)
		}
	}
}

// patience is when a waiting client has to look up, whatever it sleeps for.
func (c *client) patience() clock.Instant {
	if c.hold.Phase == rules.Waiting {
		return c.gaveUp
	}
	return clock.Never
}

func (c *client) woke() {
	c.polling = ""
	c.hold.Woke()
	c.step()
}

// idle: the hold has nothing to do by itself.
func (c *client) idle() {
	switch c.hold.Phase {
	case rules.Ended:
		c.finish()
	case rules.Lost:
		c.lost()
	case rules.Waiting: // it ended with a token out of range, which no run reaches
		c.finish()
	}
}

// lost: the program was told. It stops its work, and frees what may be left; or never calls again.
func (c *client) lost() {
	w := c.w()
	c.working = false
	if c.isSession {
		c.endLeases()
	}
	if w.rng.IntN(4) == 0 {
		c.finish()
		return
	}
	op := c.op
	w.after(w.between(0, w.cfg.TTL/4), func() {
		c.n.deliver(func() {
			if c.op == op && c.active && c.hold.Phase == rules.Lost {
				c.stop(rules.WhyReleased, "")
				c.step()
			}
		})
	})
}

func (c *client) sessionEnded() {
	if c.hold.Phase == rules.Held {
		c.lose(rules.CauseSession)
		if !c.busy {
			c.idle()
		}
	}
}

// stop tells the hold to leave.
func (c *client) stop(why, to string) {
	if !rules.Off(rules.RuleStopFirst) {
		c.working = false
	}
	by := c.n.local().Add(c.w().timing.Renew)
	switch {
	case c.session == nil:
	case rules.Off(rules.RuleSettle):
		by = c.n.local().Add(c.w().timing.Attempt)
	default:
		by = clock.Never
	}
	c.hold.Stop(c.env(), rules.Exit{Why: why, To: to, By: by})
	c.show()
}

// finish: the hold has ended; what is left of it is remembered, and after a rest there is another.
func (c *client) finish() {
	w := c.w()
	c.show()
	c.hangUp()
	c.active = false
	if c.isSession {
		if c.n.session == c {
			c.n.session = nil
		}
		c.n.clients = slices.DeleteFunc(c.n.clients, func(other *client) bool { return other == c })
		delete(w.byKey, c.key) // its clones' too: they are looked at through their nodes
		return
	}
	c.n.memory[c.key] = memory{seen: c.hold.Seen(), mine: c.hold.Orphans()}
	c.session = nil
	if w.calm && c.shown == rules.Ended && w.check.served[c] {
		return // it has had its turn
	}
	w.after(w.between(w.cfg.TTL/100, w.cfg.TTL), c.rest)
}

// send carries a request out over the network.
func (c *client) send(act rules.Action) {
	c.busy, c.asked = true, act
	c.answered = c.w().called(c.n, act)
	c.arm(act.Until, func() {
		c.outcome(store.Record{}, store.Unknown(act.Key, errTimeout))
		c.step()
	})
	op := c.op
	apply := func() (store.Record, error) {
		rec, err := c.w().apply(c, act)
		if act.Kind == rules.Write && (c.op != op || c.n.dead) {
			c.w().count(map[bool]string{true: lateLanded, false: lateRefused}[err == nil])
		}
		return rec, err
	}
	c.w().transmit(c.n, act.Key, act.Kind == rules.Write, apply,
		func(rec store.Record, err error) {
			if c.op != op || !c.busy {
				return // too late
			}
			c.outcome(rec, err)
			c.step()
		})
}

// hangUp takes down that nobody waits for the answer to the request under way any more.
func (c *client) hangUp() {
	if c.busy {
		c.answered(store.Record{}, store.Unknown(c.asked.Key, errTimeout))
		c.busy = false
	}
}

// outcome tells the hold what came of the request that is under way.
func (c *client) outcome(rec store.Record, err error) {
	c.busy = false
	c.answered(rec, err)
	if c.asked.Kind == rules.Write {
		c.hold.Wrote(c.env(), rec, err)
	} else {
		c.hold.Read(c.env(), c.asked.Key, rec, err)
	}
	c.show()
}

// poll reads the record now and then until it has another version than the one that is waited for to change. The reads that
// would find no change are left out: they change nothing.
func (c *client) poll() {
	w, op, version := c.w(), c.op, c.polling
	if c.polls == op || w.server.rows[c.key].rec.Version == version {
		return // until the record changes
	}
	c.polls = op
	w.after(w.between(w.cfg.TTL/200, pollEvery(w.cfg)), func() {
		c.n.deliver(func() {
			if c.op != op || !c.active {
				return
			}
			c.polls = 0
			read := rules.Action{Kind: rules.Read, Key: c.key}
			answered := w.called(c.n, read)
			w.transmit(c.n, c.key, false, func() (store.Record, error) { return w.apply(c, read) },
				func(rec store.Record, err error) {
					answered(rec, err)
					if c.op == op && c.active && err == nil && rec.Version != version {
						c.op++
						c.polling = ""
						c.hold.Read(c.env(), c.key, rec, nil)
						c.step()
					}
				})
			c.poll()
		})
	})
}

// changed lets those who poll key find out, sooner or later.
func (w *World) changed(key string) {
	for _, c := range w.byKey[key] {
		if c.active && c.polling != "" {
			c.poll()
		}
	}
}

func pollEvery(cfg Config) time.Duration { return cfg.TTL / 15 }

// arm calls f when the node's clock shows t, unless something else is armed before.
func (c *client) arm(t clock.Instant, f func()) {
	c.op++
	c.due, c.onDue = t, f
	c.rearm()
}

// rearm sets the timer anew; the node's clock may run at another rate now.
func (c *client) rearm() {
	if !c.active || c.onDue == nil {
		return
	}
	op, due := c.op, c.due
	c.n.timer(c.n.trueAt(due), func() {
		if c.op == op && c.active && c.n.local() >= due {
			c.onDue()
		}
	})
}

func (c *client) String() string {
	if c.isSession {
		return fmt.Sprintf("%s %s", c.n, c.key)
	}
	return fmt.Sprintf("%s %q", c.n, c.key)
}
