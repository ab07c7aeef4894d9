package kubernetes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/store"
)

// hub serves all Waits of a store with few watches: one for each name that is waited for, or, when
// they are many, one for the whole namespace.
//
// A read that is begun after a Wait and after the watch is connected sees every change before; the
// watch tells of every change after. So the first Wait for a name reads, and from then on what the
// watch tells is as good as a read if it comes after all that this handle has shown of the object:
// see entry. In any doubt the watch only says that it is time to read.
type hub struct {
	store   *Store
	ctx     context.Context // ends with the store
	cancel  context.CancelFunc
	running sync.WaitGroup
	heard   atomic.Int64 // when the server last told something on any watch: a clock.Instant

	mu      sync.Mutex
	closed  bool
	watches map[string]*watch // by object name; "" is the one of the namespace
	reads   uint64            // how many were begun: what orders reads and Waits
}

// maxNamed is how many names have a watch of their own. Those of more are watched together, with
// all Leases of the namespace.
const maxNamed = 8

// watch is what several Waits share.
type watch struct {
	name      string // of the object, or "" for all of the namespace
	cancel    context.CancelFunc
	connected bool              // it has been once: what happens from now on will be told
	live      bool              // it is now, as far as one knows
	entries   map[string]*entry // by object name
}

// waiter is one Wait.
type waiter struct {
	entry   *entry
	version version
	joined  uint64 // of hub.reads: a read that was begun before may be older than the version
	begun   bool   // a read has succeeded since: from now on it puts up with failures that pass
	heard   chan result
}

// result is what was read.
type result struct {
	rec store.Record
	err error
}

// hear hands over the latest result, in a copy. hub.mu is held.
func (w *waiter) hear(r result) {
	r.rec = r.rec.Clone()
	select {
	case <-w.heard:
	default:
	}
	w.heard <- r
}

func newHub(s *Store) *hub {
	h := &hub{store: s, watches: map[string]*watch{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// close ends the watches and waits for all goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.running.Wait()
}

// join begins a Wait.
func (h *hub) join(key, ver string) (*waiter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, store.ErrClosed
	}
	name := objectName(key)
	wt := h.watchOf(name)
	e := wt.entries[name]
	if e == nil {
		e = &entry{key: key, watch: wt, waiters: map[*waiter]struct{}{}}
		wt.entries[name] = e
	}
	w := &waiter{entry: e, joined: h.reads, heard: make(chan result, 1)}
	w.version, _ = parseVersion(ver)
	e.waiters[w] = struct{}{}
	switch {
	case wt.live && e.isLatest(ver): // the watch tells what comes next
		w.begun = true
	case wt.connected:
		h.read(e)
	}
	return w, nil
}

// leave ends a Wait.
func (h *hub) leave(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.entry.waiters, w)
	w.entry.left = h.store.clock.Now()
}

// watchOf returns the watch that a Wait for that object joins. mu is held.
func (h *hub) watchOf(name string) *watch {
	if wt := h.watches[name]; wt != nil {
		return wt
	}
	if wt := h.watches[""]; wt != nil && wt.needed() {
		return wt
	}
	if len(h.watches) >= maxNamed && !h.retireOne() {
		name = ""
		if wt := h.watches[name]; wt != nil {
			return wt
		}
	}
	ctx, cancel := context.WithCancel(h.ctx)
	wt := &watch{name: name, cancel: cancel, entries: map[string]*entry{}}
	h.watches[name] = wt
	h.running.Go(func() {
		defer cancel()
		h.follow(ctx, wt)
	})
	return wt
}

// needed reports whether somebody waits. mu is held.
func (wt *watch) needed() bool {
	for _, e := range wt.entries {
		if len(e.waiters) > 0 {
			return true
		}
	}
	return false
}

// retireOne ends a watch that nobody needs, if there is one. mu is held.
func (h *hub) retireOne() bool {
	for name, wt := range h.watches {
		if !wt.needed() {
			delete(h.watches, name)
			wt.cancel()
			return true
		}
	}
	return false
}

// idle is for how long a name is watched after the last Wait for it: whoever follows it waits again
// at once.
const idle = 10 * time.Second

// retire ends wt if nobody has waited for a while.
func (h *hub) retire(wt *watch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.store.clock.Now()
	for name, e := range wt.entries {
		if len(e.waiters) == 0 && !e.reading && now >= e.left.Add(idle) {
			delete(wt.entries, name)
		}
	}
	if len(wt.entries) > 0 {
		return false
	}
	if h.watches[wt.name] == wt {
		delete(h.watches, wt.name)
	}
	return true
}

// fail ends wt and the Waits that rely on it.
func (h *hub) fail(wt *watch, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[wt.name] == wt {
		delete(h.watches, wt.name)
	}
	for _, e := range wt.entries {
		for w := range e.waiters {
			w.hear(result{err: err})
		}
	}
	clear(wt.entries)
}
