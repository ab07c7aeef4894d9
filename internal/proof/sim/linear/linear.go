// Package linear records what clients of a store see, and checks that it is linearizable: that
// there is an order of the operations, each at an instant between its call and its return, in which
// a single copy of the store would have answered so. A write whose outcome is unknown may have
// happened at any instant after its call, or never.
//
//	var h linear.History
//	a, b := h.Client(storeOfA), h.Client(storeOfB)
//	… // use a and b, at the same time
//	err := h.Check(time.Minute)
//
// A version is known by the nonce of the write that made it, so that what an unknown write did can
// be told from what others read. Hence:
//
//   - each Put bears a nonce of its own; the same Put sent again, over the same version, bears the
//     same one;
//   - the keys aren't stored at first, and nobody writes them past the history;
//   - whatever a client knows of a version it knows through the history.
//
// The search for an order is anishathalye/porcupine's. Each key is checked by itself:
// linearizability is local.
package linear

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync"

	"github.com/leasehold/leasehold/store"
)

// History is what the clients of one store saw, in the order in which this process made their calls
// and got their answers. The zero History is empty and ready. It is safe for concurrent use.
type History struct {
	mu      sync.Mutex
	events  int64 // calls and returns so far: the clock of the history
	clients int
	keys    map[string]*log
}

// log is what was seen of one key.
type log struct {
	ops    []op
	heard  map[string]string // nonces by version, as any answer told them
	writes map[string]string // by nonce: the version that the write demands
	flaw   error             // seen without a search
}

type kind uint8

const (
	get kind = iota
	put
	remove
)

type outcome uint8

const (
	done outcome = iota
	missing
	conflict
	unknown
	landed // unknown at first, but its nonce was seen
)

// op is one operation and what came of it.
type op struct {
	client  int
	kind    kind
	over    string // put, remove: the version that it demands
	before  string // that version's nonce, if it was ever heard
	nonce   string // put: of the version that it makes
	outcome outcome
	version string // of the record in the answer
	seen    string // that record's nonce

	called, returned int64
}

// Client returns st as one client sees it, so that what it sees is recorded. The client owns st:
// closing it closes st. It may do several things at a time. It pushes if st does.
func (h *History) Client(st store.Store) store.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	r := &recorder{Store: st, h: h, client: h.clients}
	if _, pushes := st.(store.Waiter); pushes {
		return waiter{r}
	}
	return r
}

type recorder struct {
	store.Store
	h      *History
	client int
}

func (r *recorder) Get(ctx context.Context, key string) (store.Record, error) {
	end := r.h.BeginGet(r.client, key)
	rec, err := r.Store.Get(ctx, key)
	end(rec, err)
	return rec, err
}

func (r *recorder) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	end := r.h.BeginPut(r.client, rec)
	got, err := r.Store.Put(ctx, rec)
	end(got, err)
	return got, err
}

func (r *recorder) Delete(ctx context.Context, key, version string) error {
	o := op{client: r.client, kind: remove, over: version, called: r.h.tick()}
	err := r.Store.Delete(ctx, key, version)
	if o.answered(store.Record{}, err) {
		r.h.record(key, o)
	}
	return err
}

// BeginGet takes down that a client, known by a number, calls for a read, for callers that don't
// block in a store. What it returns takes down the answer; a key that isn't stored may be a record
// without a version.
func (h *History) BeginGet(client int, key string) (end func(store.Record, error)) {
	o := op{client: client, kind: get, called: h.tick()}
	return func(rec store.Record, err error) {
		switch {
		case err == nil && rec.Version != "":
			o.version, o.seen = rec.Version, rec.Nonce
		case err == nil || errors.Is(err, store.ErrNotFound):
			o.outcome = missing
		default:
			return // it says nothing
		}
		h.record(key, o)
	}
}

// BeginPut is BeginGet for a write of rec.
func (h *History) BeginPut(client int, rec store.Record) (end func(store.Record, error)) {
	o := op{client: client, kind: put, over: rec.Version, nonce: rec.Nonce, called: h.tick()}
	return func(got store.Record, err error) {
		if o.answered(got, err) {
			h.record(rec.Key, o)
		}
	}
}

// answered takes down the outcome of a write. It reports false for one that was not done and says
// nothing of the record.
func (o *op) answered(got store.Record, err error) bool {
	var other *store.ConflictError
	switch {
	case err == nil:
		o.outcome, o.version, o.seen = done, got.Version, got.Nonce
	case errors.Is(err, store.ErrUnknownOutcome):
		o.outcome, o.returned = unknown, math.MaxInt64
	case errors.As(err, &other):
		o.outcome, o.version, o.seen = conflict, other.Current.Version, other.Current.Nonce
	case errors.Is(err, store.ErrNotFound):
		o.outcome = missing
	default:
		return false
	}
	return true
}

// List promises no instant, so that nothing is checked of it, but it tells versions.
func (r *recorder) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range r.Store.List(ctx, prefix) {
			if err == nil {
				r.h.hear(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// waiter is a recorder of a store that pushes. A Wait may answer with a version that was replaced
// before it was called, so that nothing is checked of it, but it tells versions.
type waiter struct{ *recorder }

func (w waiter) Wait(ctx context.Context, key, version string) (store.Record, error) {
	rec, err := w.Store.(store.Waiter).Wait(ctx, key, version)
	if err == nil {
		w.h.hear(rec)
	}
	return rec, err
}

// tick returns the time of the history, at which something happens now.
func (h *History) tick() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events++
	return h.events
}

func (h *History) record(key string, o op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events++
	if o.outcome != unknown {
		o.returned = h.events
	}
	h.log(key).add(o)
}

func (h *History) hear(rec store.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log(rec.Key).hear(rec.Version, rec.Nonce)
}

// log returns the log of a key. h.mu is held.
func (h *History) log(key string) *log {
	if h.keys == nil {
		h.keys = map[string]*log{}
	}
	l := h.keys[key]
	if l == nil {
		l = &log{heard: map[string]string{}, writes: map[string]string{}}
		h.keys[key] = l
	}
	return l
}
