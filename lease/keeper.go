package lease

import (
	"context"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// keeper runs the driver of one hold. It sleeps until that is due, and has a goroutine from then
// on, which alone touches the hold until it has retired; then the goroutine that made it retire
// does. So renewals and the release of a term can't overtake one another, and a lease that is
// released soon costs a timer.
type keeper struct {
	l      *Lease
	d      *drive.Driver
	notice func(data []byte) // for what a notice on the record says; may be nil
	jumps  jumps             // of the wall clock

	sleep   func() bool // ends its sleep
	retired bool        // guarded by the manager's lock

	// These are set when it wakes up, under the manager's lock.
	ctx  context.Context // done when the keeper is to retire
	stop context.CancelFunc
	done chan struct{} // nil before
}

// answer is what came of a request; or, if it is late, that nothing has come of it yet.
type answer struct {
	late bool
	sent clock.Instant
	act  protocol.Action
	rec  store.Record
	err  error
}

// keep has the hold of a lease that was just acquired kept.
func (l *Lease) keep(d *drive.Driver, notice func([]byte)) error {
	k := &keeper{l: l, d: d, notice: notice}
	l.keeper = k
	k.sleep = clock.At(l.m.clk, d.Hold.Due(), k.wake)
	if !l.m.rest(k) {
		k.sleep()
		l.end(CauseClosed, ErrClosed)
		return ErrClosed
	}
	return nil
}

// rest has Close end the lease while the keeper sleeps. It reports false when the manager is
// closed.
func (m *Manager) rest(k *keeper) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && k.done == nil { // it is still asleep
		m.asleep[k] = struct{}{}
	}
	return !m.closed
}

// wake begins to run, unless the keeper has retired or the manager is closed.
func (k *keeper) wake() {
	m := k.l.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || k.retired {
		return
	}
	delete(m.asleep, k)
	k.ctx, k.stop = context.WithCancel(m.ctx)
	k.done = make(chan struct{})
	m.wg.Go(k.run)
}

// retire stops the keeper, waits for it, and returns the driver.
func (k *keeper) retire() *drive.Driver {
	m := k.l.m
	m.mu.Lock()
	k.retired = true
	delete(m.asleep, k)
	done := k.done
	m.mu.Unlock()
	if done == nil {
		k.sleep()
		return k.d
	}
	k.stop()
	<-done
	return k.d
}

// run keeps the hold until it is lost or the keeper is told to retire. A request that has no answer
// then is cut short and its outcome taken note of, for the release that follows.
func (k *keeper) run() {
	defer close(k.done)
	defer k.stop()
	var pending chan answer
	for {
		var act protocol.Action
		if pending == nil && k.ctx.Err() == nil {
			env := k.l.m.run.Env()
			if k.jumps.ahead(env, k.d.Hold.Timing.TTL/jumpShare) {
				k.d.Hold.Hasten(env.Now)
			}
			act = k.l.rider.mount(k.d.Next(env, true))
		} else {
			k.d.Hold.Expire(k.l.m.run.Env())
		}
		k.show()
		if pending == nil && (k.d.Hold.Phase != protocol.Held || k.ctx.Err() != nil) {
			break
		}
		if act.Kind == protocol.Read || act.Kind == protocol.Write {
			pending = k.send(act)
		}
		pending = k.wait(act, pending)
	}
	if k.l.m.ctx.Err() != nil {
		k.l.end(CauseClosed, ErrClosed)
	}
}

// wait blocks until the answer comes, the time of act has come, validity ends, or the keeper is to
// retire. It returns the channel of the request that still has no answer.
func (k *keeper) wait(act protocol.Action, pending chan answer) chan answer {
	m := k.l.m
	until := k.d.Hold.Deadline
	if act.Kind == protocol.Sleep {
		until = min(until, act.Until, m.clk.Now().Add(k.d.Hold.Timing.TTL/jumpLooks))
	}
	var retire <-chan struct{}
	if pending == nil {
		retire = k.ctx.Done()
	}
	var due <-chan struct{}
	if k.d.Hold.Phase == protocol.Held {
		timer := clock.NewTimer(m.clk, until.Sub(m.clk.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case a := <-pending:
		if a.late {
			k.d.Hold.Late(m.run.Env())
			return pending
		}
		k.tell(a)
		return nil
	case <-due:
		if pending == nil {
			k.d.Hold.Woke()
		}
	case <-retire:
	}
	return pending
}

// tell tells the hold what came of a request, and the trace if it was a renewal.
func (k *keeper) tell(a answer) {
	env, until := k.l.m.run.Env(), k.d.Hold.Deadline
	k.d.Hold.Tell(env, a.act, a.rec, a.err)
	if tr := k.l.events.trace; tr != nil && (a.act.Kind == protocol.Write || a.act.Kind == protocol.Touch) {
		if h := &k.d.Hold; h.Phase == protocol.Held && !h.Failing {
			a.err = nil // a conflict with the renewal itself counts, too
		}
		tr.renewed(Renewal{Took: env.Now.Sub(a.sent), Left: max(until.Sub(env.Now), 0), Err: a.err})
	}
}

// send carries out a request in a goroutine of its own, so that the end of validity is noticed
// before the answer comes.
func (k *keeper) send(act protocol.Action) chan answer {
	c := make(chan answer, 2) // late, and what came of it
	sent := k.l.m.clk.Now()
	go func() { // ends with k.ctx, and run waits for its answer
		rec, err := k.l.m.run.Request(k.ctx, act, func() { c <- answer{late: true} })
		c <- answer{act: act, rec: rec, err: err, sent: sent}
	}()
	return c
}

// show makes the hold's state the lease's.
func (k *keeper) show() {
	l, h := k.l, &k.d.Hold
	l.mu.Lock()
	// Under the lock under which the lease ends, so that no event of a hold comes after the final
	// one.
	k.d.Show(&l.term)
	if h.Phase == protocol.Lost {
		l.mu.Unlock()
		l.end(causeOf(h.Cause), h.Err)
		return
	}
	state := StateHeld
	l.trouble = nil
	if h.Failing {
		state, l.trouble = StateJeopardy, h.Err
	}
	l.emit(state, h.Deadline.Sub(l.m.clk.Now()), l.trouble)
	l.mu.Unlock()
	if data := k.d.Notice(); data != nil && k.notice != nil {
		k.notice(data)
	}
}
