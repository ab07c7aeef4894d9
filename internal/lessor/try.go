package lessor

import (
	"context"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// try takes the first steps for who asks for a name that was idle, in its own goroutine, up to what
// has to be waited for: most who ask for a name have it then. Its requests to the store end when it
// does: when ctx is done, when it has waited for as long as it may, and when the registry is
// closed. What is left, such as a write whose outcome isn't known then, is for the name's own
// goroutine.
func (n *name) try(ctx context.Context, w *waiter) {
	defer n.r.wg.Done()
	defer n.rest()
	for env := n.env(); ; {
		act := n.next(env)
		if n.over() || act.Kind != protocol.Read && act.Kind != protocol.Write {
			return
		}
		act.Until = min(act.Until, w.limit)
		rec, err := n.requestFor(ctx, act)
		ended := false
		if err != nil {
			why := n.ended(ctx, w)
			if ended = why != nil; ended {
				n.settle(w, answer{err: why})
			}
		}
		env = n.hear(act, rec, err)
		if n.over() || ended {
			return
		}
	}
}

// next returns what is to be done for the first of the queue.
func (n *name) next(env protocol.Env) protocol.Action {
	n.refuse()
	w := n.first()
	if n.d != nil && n.claimant != w && n.d.Hold.Phase == protocol.Waiting {
		n.withdraw()
	}
	if n.d == nil && w != nil {
		d := drive.Want(n.key, w.claim, w.timing, w.req.Wait == 0, n.past)
		d.Hold.Gone = n.gone
		if n.r.suppose {
			d.Hold.SupposeNew()
		}
		if env.Now < n.noted.Add(calm) {
			d.Hold.Fresh()
		}
		n.d, n.claimant = &d, w
	}
	if n.d == nil {
		return protocol.Action{}
	}
	return n.d.Next(env, true)
}

// refuse answers the callers that don't wait, but for the first of the queue, when somebody holds
// the name.
func (n *name) refuse() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tries == 0 || n.past.Seen.Rec.Owner == "" {
		return
	}
	held := n.heldBy()
	for e := n.queue.Front(); e != nil && n.tries > 0; {
		w := e.Value.(*waiter)
		e = e.Next()
		if w.req.Wait == 0 && w != n.front() {
			n.drop(w, answer{err: held})
		}
	}
}

// first returns the request that is to be served next, or nil.
func (n *name) first() *waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.front()
}

func (n *name) front() *waiter {
	if e := n.queue.Front(); e != nil {
		return e.Value.(*waiter)
	}
	return nil
}

// over takes note of a hold that has come to something, and reports whether it has.
func (n *name) over() bool {
	if n.d == nil {
		return true
	}
	switch h := &n.d.Hold; h.Phase {
	case protocol.Held:
		n.past.Granted(h.Term)
		if n.settle(n.claimant, answer{grant: Grant{Record: h.Term, ValidUntil: h.Deadline}}) {
			n.forget()
			return true
		}
		n.withdraw()
		return n.d == nil
	case protocol.Ended:
		n.past.Orphan(h)
		// The holder elsewhere has gone: nobody else lets go of what its session would keep.
		if n.d.Settle(n.env(), true) {
			return false
		}
		if h.Err != nil && !n.withdrawn && !n.vacated(h.Err) {
			n.settle(n.claimant, answer{err: h.Err})
		}
		n.forget()
		return true
	}
	return false
}

// hear tells the hold what came of a request, and returns how the world was then.
func (n *name) hear(act protocol.Action, rec store.Record, err error) protocol.Env {
	env := n.env()
	n.d.Hold.Tell(env, act, rec, err)
	n.look()
	return env
}

// look takes over what the hold has seen.
func (n *name) look() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.past.Look(&n.d.Hold)
	n.trouble = n.d.Hold.Err
}

// rest leaves what is asked to the name's own goroutine, if anything is.
func (n *name) rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running = !n.idle(); n.running {
		n.r.wg.Go(n.run)
	}
}

// env is what the hold is told of the world. Whether a session is valid is for its holder to know.
func (n *name) env() protocol.Env {
	env := n.r.run.Env()
	env.Session = clock.NoDeadline
	return env
}

// requestFor makes a request for somebody who may leave meanwhile.
func (n *name) requestFor(ctx context.Context, act protocol.Action) (store.Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.r.ctx, cancel)()
	return n.r.run.Request(ctx, act, nil)
}

// ended is why who asks has to go without an answer; nil while it doesn't.
func (n *name) ended(ctx context.Context, w *waiter) error {
	switch {
	case n.r.ctx.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n.r.clk.Now() >= w.limit:
		return n.missed()
	}
	return nil
}

// answered waits for the answer to a request, until it is over.
func (n *name) answered(ctx context.Context, w *waiter) answer {
	select {
	case a := <-w.answer:
		return a
	default:
	}
	timer := clock.NewTimer(n.r.clk, w.limit.Sub(n.r.clk.Now()))
	defer timer.Stop()
	select {
	case a := <-w.answer:
		return a
	case <-timer.C:
		return n.leave(w, n.missed())
	case <-ctx.Done():
		return n.leave(w, context.Cause(ctx))
	case <-n.r.ctx.Done():
		return n.leave(w, ErrClosed)
	}
}

func (n *name) forget() { n.d, n.claimant, n.withdrawn = nil, nil, false }

// idle reports whether nothing is asked. n.mu is held.
func (n *name) idle() bool { return len(n.todo) == 0 && n.queue.Len() == 0 && n.d == nil }
