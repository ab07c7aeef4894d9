// Package outcome remembers the writes of a store handle whose outcome is unknown. It is for
// engines whose reads may show a write that a failover takes away. Such an engine confirms a record
// that shows one of these writes before a caller sees the record.
package outcome

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold/store"
)

// The bounds on what is remembered. Beyond them every record is in doubt: that costs writes, and is
// never wrong.
const (
	mostNonces = 32     // of one key
	mostKeys   = 65_536 // of one handle
)

// Writes are the writes in doubt. The zero value is ready for use; all methods may be called from
// any goroutine.
type Writes struct {
	mu   sync.Mutex
	now  uint64
	keys map[string]map[string]uint64 // by key and nonce: when it came to be in doubt
	full map[string]uint64            // keys with too many nonces to tell, and since when
	all  bool

	underWay map[[2]string]*copies // by key and nonce: those of a write that have no answer yet
}

// copies are the writes under one nonce: copies of one, if they demand the same version.
type copies struct {
	number int
	base   string       // the version that they demand
	mixed  bool         // they demand several: their callers use a nonce again
	landed bool         // since the last one began, one was acknowledged
	left   store.Record // by that one
	// Ends then, or when all have their answers; nil before anybody asks for it.
	landing context.Context
	tell    context.CancelCauseFunc // of landing
}

// Begin notes that a write that bears nonce and demands the version base is sent: until it is
// answered it is in doubt, for all who meet it meanwhile. That may be another copy of the same
// write, whose refusal would show what no failover must take away. Call end once the answer is
// there. A deletion has no nonce, and leaves nothing that bears it. Where nothing is said to have
// landed, base says nothing.
func (w *Writes) Begin(key, base, nonce string) (end func()) {
	if nonce == "" {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.underWay == nil {
		w.underWay = map[[2]string]*copies{}
	}
	write := [2]string{key, nonce}
	c := w.underWay[write]
	if c == nil {
		c = &copies{base: base}
		w.underWay[write] = c
	}
	c.number++
	c.mixed = c.mixed || c.base != base
	if c.landed { // what begins later may be another write
		c.landed, c.landing, c.tell = false, nil, nil
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if c.number--; c.number == 0 {
			delete(w.underWay, write)
			c.end(context.Canceled)
		}
	}
}

// Landed notes that a copy of a write that is under way was acknowledged with the store's whole
// promise, and left rec: that write is in doubt no more, and those of its copies that were not sent
// yet needn't be.
func (w *Writes) Landed(rec store.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.underWay[[2]string{rec.Key, rec.Nonce}]
	if c == nil || c.mixed {
		return
	}
	c.landed, c.left = true, rec
	c.end(&store.ConflictError{Current: rec})
	w.settle(rec.Key, rec.Nonce)
}

// Landing returns a context that ends when a copy of a write that is under way lands: its cause is
// the conflict that any other copy meets then. For one that is not under way, as a deletion never
// is, it is the background.
func (w *Writes) Landing(key, nonce string) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.underWay[[2]string{key, nonce}]
	if c == nil {
		return context.Background()
	}
	if c.landing == nil {
		c.landing, c.tell = context.WithCancelCause(context.Background())
		if c.landed {
			c.end(&store.ConflictError{Current: c.left})
		}
	}
	return c.landing
}

// end ends landing, if anybody asked for it.
func (c *copies) end(cause error) {
	if c.tell != nil {
		c.tell(cause)
	}
}

// Now returns a moment for [Writes.Done].
func (w *Writes) Now() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Unknown notes a write of unknown outcome that bears nonce; a deletion bears "". One of which
// another copy has landed is in no doubt.
func (w *Writes) Unknown(key, nonce string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.underWay[[2]string{key, nonce}]; c != nil && c.landed {
		return
	}
	w.now++
	if _, full := w.full[key]; full {
		w.full[key] = w.now
		return
	}
	if w.keys == nil {
		w.keys, w.full = map[string]map[string]uint64{}, map[string]uint64{}
	}
	nonces := w.keys[key]
	switch {
	case nonces == nil && len(w.keys)+len(w.full) >= mostKeys:
		w.all = true
	case nonces == nil:
		w.keys[key] = map[string]uint64{nonce: w.now}
	case len(nonces) >= mostNonces:
		delete(w.keys, key)
		w.full[key] = w.now
	default:
		nonces[nonce] = w.now
	}
}

// Done notes that a write to key, sent at since or later, was acknowledged with the store's whole
// promise. A write that was in doubt before then has landed below it, or never will: the version
// that it demands is gone.
func (w *Writes) Done(key string, since uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for nonce, at := range w.keys[key] {
		if at <= since {
			delete(w.keys[key], nonce)
		}
	}
	if len(w.keys[key]) == 0 {
		delete(w.keys, key)
	}
	if w.full[key] <= since {
		delete(w.full, key)
	}
}

// Confirmed notes that the write with that nonce is part of what no failover takes away.
func (w *Writes) Confirmed(key, nonce string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle(key, nonce)
}

func (w *Writes) settle(key, nonce string) {
	delete(w.keys[key], nonce)
	if len(w.keys[key]) == 0 {
		delete(w.keys, key)
	}
}

// Shows reports whether a record of key that bears nonce, "" where there is none, shows a write in
// doubt.
func (w *Writes) Shows(key, nonce string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, doubted := w.keys[key][nonce]
	_, full := w.full[key]
	c := w.underWay[[2]string{key, nonce}]
	return doubted || full || w.all || c != nil && !c.landed
}
