package lease

import (
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// State is where a lease stands.
type State string

// The states. The last two are final.
const (
	StateHeld     State = "held"
	StateJeopardy State = "jeopardy" // a renewal failed; still valid, and retried fast
	StateLost     State = "lost"
	StateReleased State = "released" // its holder released it or handed it over
)

// Event is a change of a lease's state.
type Event struct {
	Name   string
	Token  fence.Token
	Holder string // the owner id
	State  State
	Left   time.Duration // the validity that was left then
	Err    error         // in jeopardy, what failed; when lost, a *LostError
}

// LogValue implements [slog.LogValuer]. The value is that of the term's [fence.Sequencer], with
// state, left in seconds, and error:
//
//	OnEvent: func(e lease.Event) { log.Info("the lease has changed", "lease", e) }
func (e Event) LogValue() slog.Value {
	attrs := fence.Sequencer{Name: e.Name, Token: e.Token, Holder: e.Holder}.LogValue().Group()
	attrs = append(attrs, slog.String("state", string(e.State)), slog.Float64("left", max(e.Left, 0).Seconds()))
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}

// eventBuffer is how many events a lease keeps for a reader that is slow. The last place is for the
// final event.
const eventBuffer = 16

// stream is the ordered path of one lease's events. It is used by one goroutine at a time.
type stream struct {
	c      chan Event
	state  State
	passes bool // the dispatcher takes the events, too
	trace  *TermTrace
}

// emit passes e on if it is news. An event is left out when the reader is far behind; the final one
// never is.
func (s *stream) emit(e Event, d *dispatcher) {
	if e.State == s.state {
		return
	}
	s.state = e.State
	s.trace.event(e)
	final := e.State == StateLost || e.State == StateReleased
	if s.passes {
		d.pass(e, final)
	}
	if s.c == nil {
		return
	}
	if final || len(s.c) < cap(s.c)-1 {
		s.c <- e
	}
	if final {
		close(s.c)
	}
}

// emit passes a change of state on. The lease's lock is held.
func (l *Lease) emit(s State, left time.Duration, err error) {
	l.events.emit(l.event(s, left, err), l.m.events)
}

func (l *Lease) event(s State, left time.Duration, err error) Event {
	if s == StateLost && err == nil {
		err = l.lost
	}
	if s == StateReleased {
		err = nil
	}
	return Event{Name: l.key, Token: l.token, Holder: l.m.owner, State: s, Left: left, Err: err}
}

// dispatcher calls [Options.OnEvent], one event after the other, in a goroutine of its own while
// there are any. Nobody waits for that goroutine but [Manager.Close]: events are caused under the
// locks of leases, and by what keeps them.
type dispatcher struct {
	call func(Event)

	mu      sync.Mutex
	changed sync.Cond // of running and open
	queue   []Event
	running bool // the goroutine is
	open    int  // leases that it was told of, and not of their end
	closed  bool
}

// newDispatcher returns one that calls f; nil if f is.
func newDispatcher(f func(Event)) *dispatcher {
	if f == nil {
		return nil
	}
	d := &dispatcher{call: f}
	d.changed.L = &d.mu
	return d
}

// admit reports whether the events of a lease that begins are to be passed on: all of them, up to
// the final one, or none.
func (d *dispatcher) admit() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.open++
	}
	return !d.closed
}

// pass has OnEvent called with an event of a lease that was admitted. It doesn't block.
func (d *dispatcher) pass(e Event, final bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, e)
	if final {
		d.open--
	}
	if !d.running {
		d.running = true
		go d.run() // close waits for it
	}
}

// run calls OnEvent until there is no event left.
func (d *dispatcher) run() {
	for events := d.take(); len(events) > 0; events = d.take() {
		for _, e := range events {
			d.call(e)
		}
	}
}

// take returns the events that wait. When there are none, the goroutine is over.
func (d *dispatcher) take() []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	events := d.queue
	d.queue = nil
	if len(events) == 0 {
		d.running = false
		d.changed.Broadcast()
	}
	return events
}

// close waits until the end of every lease has been told, and ends the dispatcher. Each lease has
// ended, or is about to.
func (d *dispatcher) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.running || d.open > 0 {
		d.changed.Wait()
	}
	d.closed = true
}

func (t *TermTrace) event(e Event) {
	if t != nil && t.Event != nil {
		t.Event(e)
	}
}
