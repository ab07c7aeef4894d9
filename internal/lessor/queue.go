package lessor

import (
	"cmp"
	"container/list"
)

// enqueue puts a request into the queue. It is called with n.mu held.
func (n *name) enqueue(w *waiter) {
	n.r.queued.Add(1)
	old := n.find(w.req.ID)
	if old != nil {
		w.since = old.since
		w.place = n.queue.InsertBefore(w, old.place)
	} else {
		w.place = n.insert(w)
	}
	if w.req.ID != "" {
		n.byID[w.req.ID] = w
	}
	if w.req.Wait == 0 {
		n.tries++
	}
	if old != nil {
		n.drop(old, answer{err: ErrReplaced})
		return
	}
	n.changed()
}

// insert puts w where its rank belongs, behind all that have come before it.
func (n *name) insert(w *waiter) *list.Element {
	at := n.queue.Back()
	if w.rank != 0 {
		for at != nil && !precedes(at.Value.(*waiter).rank, w.rank) {
			at = at.Prev()
		}
	}
	if at == nil {
		return n.queue.PushFront(w)
	}
	return n.queue.InsertAfter(w, at)
}

// precedes reports whether rank a is before b; 0 is behind all.
func precedes(a, b uint64) bool { return a != 0 && cmp.Less(a, b) }

func (n *name) find(id string) *waiter {
	if id == "" {
		return nil
	}
	return n.byID[id]
}

// drop takes w out of the queue and answers it. It is called with n.mu held, and reports false when
// w had been answered.
func (n *name) drop(w *waiter, a answer) bool {
	if w.place == nil {
		return false
	}
	n.queue.Remove(w.place)
	n.r.queued.Add(-1)
	w.place = nil
	if n.byID[w.req.ID] == w {
		delete(n.byID, w.req.ID)
	}
	if w.req.Wait == 0 {
		n.tries--
	}
	w.answer <- a
	n.changed()
	return true
}

func (n *name) changed() {
	if n.r.opts.OnQueue != nil {
		n.r.opts.OnQueue(n.key, n.queue.Len())
	}
}

// leave gives up a place because of err, and returns the request's answer, which may have been
// given before.
func (n *name) leave(w *waiter, err error) answer {
	n.mu.Lock()
	n.drop(w, answer{err: err})
	n.poke()
	n.mu.Unlock()
	return <-w.answer
}

// settle answers w, and reports whether it was still waiting for that.
func (n *name) settle(w *waiter, a answer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.drop(w, a)
}

func (n *name) remove(id string) (removed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.poke()
	for e := n.queue.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		if (id == "" || w.req.ID == id) && n.drop(w, answer{err: ErrRemoved}) {
			removed++
		}
	}
	return removed
}

func (n *name) waiting() []Waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]Waiter, 0, n.queue.Len())
	for e := n.queue.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		all = append(all, Waiter{Owner: w.req.Owner, ID: w.req.ID, Info: w.req.Info, Since: w.since, Until: w.limit})
	}
	return all
}

// poke has the goroutine look at what is asked.
func (n *name) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
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
