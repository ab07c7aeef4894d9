package lessor

import (
	"context"

	"github.com/leasehold/leasehold/clock"
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.r.ctx, cancel)()
	for env := n.env(); ; {
		act := n.next(env)
		if n.over() || act.Kind != protocol.Read && act.Kind != protocol.Write {
			return
		}
		act.Until = min(act.Until, w.limit)
		rec, err := n.r.run.Request(ctx, act, nil)
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

// idle reports whether nothing is asked. n.mu is held.
func (n *name) idle() bool { return len(n.todo) == 0 && n.queue.Len() == 0 && n.d == nil }
