package kubernetes

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// entry is a key that is waited for, or was a moment ago.
//
// latest is the record as it was last read from a quorum, or told by the watch after that. What the
// watch tells next is taken for the record without a read as [watcher.Latest] says, by resource
// versions: numbers that rise. Where they are none, what the watch tells is in doubt, and read. So
// is a deletion.
type entry struct {
	key     string
	watch   *watch
	waiters map[*waiter]struct{}
	left    clock.Instant // when the last of them left

	watcher.Latest
	latest store.Record // that of Latest.At

	reading bool // a goroutine reads it
	again   bool // and has to do so once more
}

// order returns the place of a resource version in the order of all, or 0 when it tells none.
func order(resource string) uint64 {
	n, err := strconv.ParseUint(resource, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// begun says that wt is connected. Where it doesn't go on from where it was, all that is waited for
// is read.
func (h *hub) begun(wt *watch, resumed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wt.connected, wt.live = true, true
	if resumed {
		return
	}
	for _, e := range wt.entries {
		h.doubt(e)
	}
}

// lapsed says that wt is not connected for now. Who begins to wait reads.
func (h *hub) lapsed(wt *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wt.live = false
}

// told says that the object is, or was, as obj has it; gone that it was deleted.
func (h *hub) told(wt *watch, obj *coordinationv1.Lease, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := wt.entries[obj.Name]
	switch {
	case e == nil:
	case !gone && e.take(obj):
	case !gone && len(e.waiters) > 0 && e.isKnown(obj.ResourceVersion):
	default:
		h.doubt(e)
	}
}

// isLatest reports whether that version is the latest that is known, and this handle has shown none
// after it. hub.mu is held.
func (e *entry) isLatest(ver string) bool {
	v, _ := parseVersion(ver)
	return e.Known && e.latest.Version == ver && (ver == "" || order(v.resource) >= e.Shown)
}

// take makes obj, which the watch told, the record, and hands it over. It reports false, and
// doesn't, when obj is in doubt. hub.mu is held.
func (e *entry) take(obj *coordinationv1.Lease) bool {
	at, from := order(obj.ResourceVersion), make([]uint64, 0, len(e.waiters))
	for w := range e.waiters {
		from = append(from, order(w.version.resource))
	}
	if !e.Counts(at, from...) {
		return false
	}
	rec, err := read(e.key, obj)
	if err != nil {
		return false
	}
	e.At, e.latest = at, rec
	for w := range e.waiters {
		if w.version.resource != obj.ResourceVersion {
			w.hear(result{rec: rec})
		}
	}
	return true
}

// isKnown reports whether all who wait know that version of the object. hub.mu is held.
func (e *entry) isKnown(resource string) bool {
	for w := range e.waiters {
		if w.version.resource != resource {
			return false
		}
	}
	return true
}

// show says that this handle shows the object of a key to a caller, at that resource version; ""
// that there is none.
func (h *hub) show(key, resource string) {
	name, at := objectName(key), order(resource)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, wt := range []*watch{h.watches[name], h.watches[""]} {
		if wt == nil || wt.entries[name] == nil {
			continue
		}
		wt.entries[name].Show(at, h.reads)
	}
}

// doubt has e read if somebody waits for it, or else when somebody does. mu is held.
func (h *hub) doubt(e *entry) {
	e.Known = false
	if len(e.waiters) > 0 || e.reading {
		h.read(e)
	}
}

// read has e read in a goroutine, once more if that is under way. mu is held.
func (h *hub) read(e *entry) {
	e.Known = false
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
		if r.rec, _, r.err = h.store.get(ctx, e.key); errors.Is(r.err, store.ErrNotFound) {
			r = result{rec: store.Record{Key: e.key}}
		}
		cancel()

		if h.deliver(e, r, begun) {
			return
		}
		if r.err != nil {
			// Its error is that of the ctx.
			_ = clock.Sleep(h.ctx, h.store.clock, pause-rand.N(pause/2))
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
	if e.Known = r.err == nil && !e.again; e.Known {
		e.latest = r.rec
		v, _ := parseVersion(r.rec.Version)
		e.Read(order(v.resource), begun)
	}
	return true
}
