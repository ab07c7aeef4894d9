package lease

import "sync"

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
