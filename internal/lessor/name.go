package lessor

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// name is one name, with what is asked about it. Its goroutine runs while anything is; one change
// that is asked of an idle name is made by whoever asks, and so are the first steps of who asks for
// an idle name.
type name struct {
	r   *Registry
	key string

	mu      sync.Mutex
	running bool
	todo    []func() // to be done by the goroutine
	queue   *list.List
	byID    map[string]*waiter
	tries   int           // how many in the queue don't wait
	wake    chan struct{} // of capacity 1

	// What follows is the goroutine's own, but for past and trouble, which are written with mu
	// held.
	past      drive.Recollection // of the record, and of claims that were given up
	noted     clock.Instant      // when the record was last read or written here, but by the hold
	trouble   error              // why the hold's last request failed
	d         *drive.Driver      // takes the name for the first of the queue
	claimant  *waiter            // whom it is for
	withdrawn bool               // the hold is being let go
	gone      map[string]bool    // sessions of members of another kind that are over
	awaited   version            // the version whose end was waited for last
	calm      clock.Instant      // from when on the store is asked to tell of that
	watch     *watch             // that it was asked; nil for not yet
}

// version is one of a record: the name's own, or that of the session that keeps it.
type version struct{ key, version string }

// watch is a wait for a change of the record that is under way.
type watch struct {
	cancel context.CancelFunc
	told   chan read // of capacity 1
}

type read struct {
	rec store.Record
	err error
}

func newName(r *Registry, key string) *name {
	return &name{r: r, key: key, queue: list.New(), byID: map[string]*waiter{}, wake: make(chan struct{}, 1)}
}

// run does what is asked until nothing is.
func (n *name) run() {
	for n.r.ctx.Err() == nil {
		todo, idle := n.take()
		if idle {
			return
		}
		for _, do := range todo {
			do()
		}
		n.serve()
	}
	n.stop()
}

// take returns what is to be done, or ends the goroutine's turn.
func (n *name) take() (todo []func(), idle bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if idle = n.idle(); idle {
		n.unwatch()
	}
	n.running = !idle // from here on another goroutine may be the name's
	todo, n.todo = n.todo, nil
	return todo, idle
}

// turn does what has been asked of a name that was idle in the goroutine of whoever asks, who waits
// for it anyhow. If more has been asked meanwhile, the name's own goroutine does that.
func (n *name) turn() {
	defer n.r.wg.Done()
	todo, _ := n.take()
	for _, do := range todo {
		do()
	}
	n.rest()
}

// stop answers everybody when the registry closes.
func (n *name) stop() {
	n.mu.Lock()
	todo := n.todo
	for w := n.front(); w != nil; w = n.front() {
		n.drop(w, answer{err: ErrClosed})
	}
	n.mu.Unlock()
	for _, do := range todo {
		do() // fails at its first request
	}
}

// serve takes one step towards granting the name to the first of the queue.
func (n *name) serve() {
	act := n.next(n.env())
	if n.over() {
		return
	}
	if taken := act.Kind == protocol.Wait || act.Kind == protocol.Refuse; taken && n.again() {
		return
	}
	n.do(act)
	n.over()
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

// do carries out what the hold asks for.
func (n *name) do(act protocol.Action) {
	switch act.Kind {
	case protocol.Refuse:
		n.look()
		n.settle(n.claimant, answer{err: n.missed()})
		n.forget()
	case protocol.Sleep:
		timer := clock.NewTimer(n.r.clk, act.Until.Sub(n.r.clk.Now()))
		defer timer.Stop()
		select {
		case <-timer.C:
			n.d.Hold.Woke()
		case <-n.wake:
		case <-n.r.ctx.Done():
		}
	case protocol.Wait:
		n.await(act)
	case protocol.Read, protocol.Write:
		rec, err := n.r.run.Request(n.r.ctx, act, nil)
		n.hear(act, rec, err)
	}
}

// calm is how long a version has to last before the store is asked to tell of the next one, and for
// how long what was read or written here is taken for the present record by those who wait. While a
// name goes from one of the queue to the next within a moment, to ask would cost more than the
// hand-over; and a change by somebody else is noticed that much later.
const calm = 2 * time.Millisecond

// await waits for the record to change, for the time that act allows, or for something to be asked.
func (n *name) await(act protocol.Action) {
	n.look()
	if v := (version{act.Key, act.Version}); n.awaited != v {
		n.unwatch()
		n.awaited, n.calm = v, n.r.clk.Now().Add(calm)
	}
	until, told := act.Until, (<-chan read)(nil)
	if n.watch != nil {
		told = n.watch.told
	} else {
		until = min(until, n.calm)
	}
	timer := clock.NewTimer(n.r.clk, until.Sub(n.r.clk.Now()))
	defer timer.Stop()
	select {
	case <-n.wake:
	case <-n.r.ctx.Done():
	case <-timer.C:
		if until == act.Until {
			n.d.Hold.Woke()
		} else {
			n.listen(act)
		}
	case told := <-told:
		n.unwatch()
		n.hear(act, told.rec, told.err)
	}
}

// listen asks the store to tell of the next version.
func (n *name) listen(act protocol.Action) {
	ctx, cancel := context.WithCancel(n.r.ctx)
	w := &watch{cancel: cancel, told: make(chan read, 1)}
	n.watch = w
	n.r.wg.Go(func() {
		rec, err := driver.WaitHolder(ctx, n.r.st, act.Key, act.Version)
		w.told <- read{rec, err}
	})
}

// unwatch ends the wait under way, if there is one.
func (n *name) unwatch() {
	if n.watch != nil {
		n.watch.cancel()
		n.watch = nil
	}
}
