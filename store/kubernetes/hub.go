package kubernetes

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// hub serves all Waits of a store with few watches: one for each name that is waited for, or, when they are many, one for the
// whole namespace.
//
// What a watch tells is not what a Wait returns: it may be older than the version that the Wait began with. It only says
// that it is time to read. A read that is begun after a Wait and after the watch is connected sees every change before; the
// watch tells of every change after.
type hub struct {
	store   *Store
	ctx     context.Context // ends with the store
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	watches map[string]*watch // by object name; "" is the one of the namespace
	reads   uint64            // how many were begun: what orders reads and Waits
}

// maxNamed is how many names have a watch of their own. Those of more are watched together, with all Leases of the namespace.
const maxNamed = 8

// watch is what several Waits share.
type watch struct {
	name      string // of the object, or "" for all of the namespace
	cancel    context.CancelFunc
	connected bool              // it has been once: what happens from now on will be told
	entries   map[string]*entry // by object name; none for a while after the last Wait
}

// entry is a key that is waited for.
type entry struct {
	key     string
	watch   *watch
	waiters map[*waiter]struct{}
	reading bool // a goroutine reads it
	again   bool // and has to do so once more
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
	if wt.connected {
		h.read(e)
	}
	return w, nil
}

// leave ends a Wait.
func (h *hub) leave(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := w.entry
	delete(e.waiters, w)
	if len(e.waiters) == 0 && e.watch.entries[objectName(e.key)] == e {
		delete(e.watch.entries, objectName(e.key))
	}
}

// watchOf returns the watch that a Wait for that object joins. mu is held.
func (h *hub) watchOf(name string) *watch {
	if wt := h.watches[name]; wt != nil {
		return wt
	}
	if wt := h.watches[""]; wt != nil && len(wt.entries) > 0 {
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

// retireOne ends a watch that nobody needs, if there is one. mu is held.
func (h *hub) retireOne() bool {
	for name, wt := range h.watches {
		if len(wt.entries) == 0 {
			delete(h.watches, name)
			wt.cancel()
			return true
		}
	}
	return false
}

// retire ends wt if nobody waits.
func (h *hub) retire(wt *watch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
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

// begun says that wt is connected. Where it doesn't go on from where it was, all that is waited for is read.
func (h *hub) begun(wt *watch, resumed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wt.connected = true
	if resumed {
		return
	}
	for _, e := range wt.entries {
		h.read(e)
	}
}

// told says that the object of that name is, or was, at that resource version; gone that it was deleted.
func (h *hub) told(wt *watch, name, resource string, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := wt.entries[name]
	if e == nil {
		return
	}
	for w := range e.waiters {
		if gone || w.version.resource != resource {
			h.read(e)
			return
		}
	}
}

// read has e read in a goroutine, once more if that is under way. mu is held.
func (h *hub) read(e *entry) {
	if e.reading || h.closed {
		e.again = true
		return
	}
	e.reading = true
	h.running.Go(func() { h.readUntilQuiet(e) })
}

// readLimit is how long one read may take.
const readLimit = 10 * time.Second

func (h *hub) readUntilQuiet(e *entry) {
	for pause := retryMin; ; {
		h.mu.Lock()
		h.reads++
		begun := h.reads
		e.again = false
		h.mu.Unlock()

		ctx, cancel := clock.WithTimeout(h.ctx, h.store.clock, readLimit)
		var r result
		r.rec, r.err = store.Load(ctx, h.store, e.key)
		cancel()

		if h.deliver(e, r, begun) {
			return
		}
		if r.err != nil {
			_ = clock.Sleep(h.ctx, h.store.clock, pause-rand.N(pause/2)) // its error is that of the ctx
			pause = min(2*pause, retryMax)
		}
	}
}

// deliver hands over what was read, and returns whether that was all that e needs.
func (h *hub) deliver(e *entry, r result, begun uint64) (quiet bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range e.waiters {
		switch {
		case w.joined >= begun:
		case r.err != nil && w.begun && mayPass(r.err):
			e.again = true
		default:
			w.begun = true
			w.hear(r)
		}
	}
	if e.again && len(e.waiters) > 0 && !h.closed {
		return false
	}
	e.reading = false
	return true
}
