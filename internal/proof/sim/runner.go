package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// runner runs a driver by events, as goroutines do in production: one thing at a time, each outcome
// told.
type runner struct {
	n *node
	// Who waits for what comes of it; nil when it settles in the background what nobody waits for.
	c         *client
	key       string
	session   *client // that keeps its hold, or nil
	ofSession bool    // it keeps a session's record
	d         drive.Driver

	then     func(*protocol.Hold) // what a server does for a holder elsewhere: told what came of it
	done     bool
	busy     bool                      // a request is under way
	asked    protocol.Action           // that request, or the wait or the rest
	answered func(store.Record, error) // takes down its answer
	op       int                       // number of the timer that counts
	request  int                       // number of the request that counts
	copies   drive.Copies              // of it
	due      clock.Instant
	onDue    func()
	polling  string // the version that it waits to see changed
	polls    int    // the op for which a poll is under way

	following bool              // it waits for what the store pushes
	joined    map[string]uint64 // of each key, how many reads its node had begun then
}

var (
	errTimeout   = errors.New("no answer in time")
	errCancelled = errors.New("the call was cancelled")
)

func (r *runner) w() *World { return r.n.w }

func (r *runner) env() protocol.Env {
	env := protocol.Env{Now: r.n.local(), Wall: r.n.wallClock(), Nonce: r.w().nonce, Jitter: r.w().rng.Float64()}
	if r.session != nil {
		env.Session = r.session.validUntil()
	}
	return env
}

// step asks the driver what to do until it has to wait for something.
func (r *runner) step() {
	for !r.done && !r.busy && !r.n.dead {
		if r.d.Insists() && !r.session.valid() {
			r.settled()
			return
		}
		act := r.d.Next(r.env(), r.wanted())
		if r.then != nil {
			if r.answers() {
				return
			}
		} else if r.c != nil && !r.c.look(act) {
			return
		}
		switch act.Kind {
		case protocol.Idle:
			if r.d.Hold.Phase == protocol.Ended && r.c == nil {
				r.settled()
			}
			return
		case protocol.Refuse:
			return
		case protocol.Sleep, protocol.Wait:
			r.asked = act
			if r.following = act.Kind == protocol.Wait && r.d.Hold.Follow; act.Kind == protocol.Wait && !r.following {
				r.polling = act.Version
			}
			r.arm(min(act.Until, r.patience()), r.woke)
			r.poll()
			r.follow()
			return
		}
		r.send(act)
	}
}

// wanted reports whether the program still waits for the name, and its session lives.
func (r *runner) wanted() bool {
	return r.c != nil && r.n.local() < r.c.gaveUp && (r.session == nil || r.session.valid())
}

// patience is when a program that waits has to look up, whatever it sleeps for.
func (r *runner) patience() clock.Instant {
	if r.c != nil && r.d.Hold.Phase == protocol.Waiting {
		return r.c.gaveUp
	}
	return clock.NoDeadline
}

// woke: the time of a rest or a wait is over, or it was cut short.
func (r *runner) woke() {
	r.polling, r.following = "", false
	r.d.Hold.Tell(r.env(), r.asked, store.Record{}, errCancelled)
	r.step()
}

// settle goes on in the background with a hold that is being let go, as a manager does.
func (r *runner) settle() {
	r.n.memory.Remember(&r.d.Hold)
	if !r.d.Settle(r.env(), r.session != nil && r.session.valid()) {
		return
	}
	b := &runner{n: r.n, key: r.key, session: r.session, ofSession: r.ofSession, d: r.d}
	r.n.settling = append(slices.DeleteFunc(r.n.settling, func(r *runner) bool { return r.done }), b)
	b.step()
}

// settled: what was tried in the background has ended, or the session is over for which it was.
func (r *runner) settled() {
	r.cut()
	r.n.memory.Remember(&r.d.Hold)
	if r.d.Settle(r.env(), r.session != nil && r.session.valid()) {
		r.step()
		return
	}
	r.done = true
}

// send carries a request out over the network.
func (r *runner) send(act protocol.Action) {
	r.busy, r.asked, r.copies = true, act, drive.Copies{}
	r.request++
	r.answered = r.w().called(r.n, act)
	r.sendCopy(act)
	r.await(act, act.Again)
}

// await waits for the answer to a request, which is sent once more at again, unless that is 0.
func (r *runner) await(act protocol.Action, again clock.Instant) {
	if again == 0 || again >= act.Until {
		r.arm(act.Until, r.timedOut)
		return
	}
	r.arm(again, func() {
		// The client library says that it has lost what it sent.
		if r.w().chance(brokenConnection, "broken connection") {
			r.timedOut()
			return
		}
		r.d.Hold.Late(r.env())
		if r.d.Hold.Phase == protocol.Lost {
			r.timedOut()
			return
		}
		r.w().count("request sent again beside the first")
		r.sendCopy(act)
		r.await(act, drive.NextCopy(act, r.n.local()))
	})
}

// brokenConnection is how often a request that is late has no answer any more.
const brokenConnection = 0.2

// timedOut: there is no answer to the request under way.
func (r *runner) timedOut() {
	r.outcome(store.Record{}, driver.Unknown(r.asked.Key, errTimeout))
	r.step()
}

// sendCopy sends one copy of the request under way.
func (r *runner) sendCopy(act protocol.Action) {
	r.copies.Send()
	request, number := r.request, r.copies.Sent
	apply := func() (store.Record, error) {
		rec, err := r.w().apply(r, act)
		if act.Kind == protocol.Write && (r.request != request || !r.busy || r.n.dead) {
			r.w().count(map[bool]string{true: lateLanded, false: lateRefused}[err == nil])
		}
		return rec, err
	}
	r.w().transmit(r.n, act.Key, act.Kind == protocol.Write, apply,
		func(rec store.Record, err error) {
			if r.request != request || !r.busy {
				return // too late
			}
			if over, err := r.copies.Answered(number, act, err); over {
				r.outcome(rec, err)
				r.step()
			}
		})
}

// hangUp takes down that nobody waits for the answer to the request under way any more.
func (r *runner) hangUp() {
	if r.busy {
		r.answered(store.Record{}, driver.Unknown(r.asked.Key, errTimeout))
		r.busy = false
	}
}

// cut cuts a request short that is under way. Its outcome is taken for unknown.
func (r *runner) cut() {
	if r.busy {
		r.outcome(store.Record{}, driver.Unknown(r.key, errCancelled))
	}
	r.polling, r.following = "", false
	r.op++ // no timer counts any more
}

// interrupt ends what it waits for, since who wants it doesn't, or its session is over.
func (r *runner) interrupt() {
	if !r.done {
		r.cut()
		r.step()
	}
}

// outcome tells the driver what came of the request that is under way.
func (r *runner) outcome(rec store.Record, err error) {
	r.busy = false
	r.op++ // it isn't timed any more
	r.show(rec, err)
	if refused := errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound); refused && r.copies.Sent > 1 {
		r.answered(rec, driver.Unknown(r.asked.Key, err)) // another copy may have landed before
	} else {
		r.answered(rec, err)
	}
	r.d.Hold.Tell(r.env(), r.asked, rec, err)
}

// show takes down what the process is shown by the answer to a request.
func (r *runner) show(rec store.Record, err error) {
	var conflict *store.ConflictError
	switch {
	case err == nil:
		r.n.show(r.asked.Key, rec.Version)
	case errors.As(err, &conflict):
		r.n.show(r.asked.Key, conflict.Current.Version)
	case errors.Is(err, store.ErrNotFound):
		r.n.show(r.asked.Key, "")
	}
}

// poll reads the record now and then until it has another version than the one that is waited for
// to change. The reads that would find no change are left out: they change nothing.
func (r *runner) poll() {
	w, op, version := r.w(), r.op, r.polling
	if version == "" || r.polls == op || w.server.rows[r.key].rec.Version == version {
		return // until the record changes
	}
	r.polls = op
	w.after(w.between(w.cfg.TTL/200, pollEvery(w.cfg)), func() {
		r.n.deliver(func() {
			if r.op != op || r.done {
				return
			}
			r.polls = 0
			read := protocol.Action{Kind: protocol.Read, Key: r.key}
			answered := w.called(r.n, read)
			w.transmit(r.n, r.key, false, func() (store.Record, error) { return w.apply(r, read) },
				func(rec store.Record, err error) {
					answered(rec, err)
					if r.op == op && !r.done && err == nil && rec.Version != version {
						r.op++
						r.polling = ""
						r.d.Hold.Tell(r.env(), r.asked, rec, nil)
						r.step()
					}
				})
			r.poll()
		})
	})
}

// changed lets those who poll key find out, sooner or later.
func (w *World) changed(key string) {
	for _, c := range w.byKey[key] {
		if c.active {
			c.run.poll()
		}
	}
	w.push(key)
}

func pollEvery(cfg Config) time.Duration { return cfg.TTL / 15 }

// arm calls f when the node's clock shows t, unless something else is armed before.
func (r *runner) arm(t clock.Instant, f func()) {
	r.op++
	r.due, r.onDue = t, f
	r.rearm()
}

// rearm sets the timer again; the node's clock may run at another rate now.
func (r *runner) rearm() {
	if r.done || r.onDue == nil {
		return
	}
	op, due := r.op, r.due
	r.n.timer(r.n.trueAt(due), func() {
		if r.op == op && !r.done && r.n.local() >= due {
			r.onDue()
		}
	})
}

// revive lets the runner of a cloned program go on. The connection that its request was sent on is
// the original's.
func (r *runner) revive() {
	if !r.busy {
		if r.asked.Kind == protocol.Wait {
			r.asked.Until = r.n.local()
		}
		r.arm(r.n.local(), r.woke)
		return
	}
	r.answered = func(store.Record, error) {} // the original takes it down
	r.arm(r.asked.Until, r.timedOut)
}

func (r *runner) String() string {
	if r.ofSession {
		return r.n.String() + " " + r.key
	}
	return r.n.String() + ` "` + r.key + `"`
}

// clone returns the runner of a clone of the process, without its timers.
func (r *runner) clone(n *node, c, session *client) *runner {
	k := *r
	k.n, k.c, k.session, k.onDue, k.polls, k.following = n, c, session, nil, 0, false
	return &k
}
