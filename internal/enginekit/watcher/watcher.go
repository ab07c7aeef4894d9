// Package watcher serves the Waits of an engine whose server tells every change together with the
// new record. The server tells them in order, as long as the engine's watch stands.
//
// All Waits of a store for one key share a [Watch]. The engine tells the Watch what its server
// tells the engine. A Wait reads when the server's watch has begun, so nothing between the two is
// lost. It also reads each time that the watch ended or was begun again. From then on, what the
// watch is told is as good as a read. A Wait returns it without a further round trip. Where reads
// are linearizable, a Wait that begins with the version that the watch knows doesn't read at all:
// see [Reader.Linearizable].
//
// A [Set] has the watches of a store: who waits for a key joins the watch on it, which begins with
// the first and outlives the last for a while. So an engine's own part is to keep one watch of its
// server's up, and to say how it reads.
package watcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// The bounds of the pause before a watch of the server's that ended is begun anew, and before a
// read that failed is repeated.
const (
	RetryMin = 10 * time.Millisecond
	RetryMax = time.Second
)

// Watch is what all Waits of a store for one key share. Its methods may be called from any
// goroutine.
type Watch struct {
	key string

	mu    sync.Mutex
	state state
	turn  chan struct{} // closed when the state changes, and replaced
}

// state is what a watch was told.
type state struct {
	tries int // how often the server's watch began, failed to begin, or ended
	// Of the latest change, or of the last read that is known; 0 before the first one.
	revision uint64
	rec      store.Record
	err      error

	// Tries when rec was told or read: while they are the same, nothing has been missed since
	// revision.
	at    int
	ended bool   // the server's watch doesn't stand
	shown uint64 // the highest revision that the store has shown to a caller
}

// isLatest reports whether that version is the latest that is known, and the store has shown
// nothing later.
func (st state) isLatest(version string) bool {
	return st.tries > 0 && st.at == st.tries && !st.ended && st.err == nil && st.rec.Version == version && st.shown <= st.revision
}

// New returns a watch on key that was told nothing yet.
func New(key string) *Watch { return &Watch{key: key, turn: make(chan struct{})} }

// Begin is New, as the Begin of a [Kind].
func Begin(_ context.Context, key string) *Watch { return New(key) }

// Again says that the server's watch began, failed to begin, or ended: whoever waits reads.
func (w *Watch) Again() { w.change(func(st *state) { st.tries++; st.ended = false }) }

// Ended is Again for a watch that failed to begin, or ended: until the next Again all Waits begin
// with a read.
func (w *Watch) Ended() { w.change(func(st *state) { st.tries++; st.ended = true }) }

// Rewind is for a server whose revisions may begin again lower, as they do when it is put back from
// a backup: it is at that revision now, 0 for a key that isn't stored and has none. If the watch
// was told a later one, it forgets that and what was shown, and whoever waits reads.
func (w *Watch) Rewind(revision uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.revision > revision {
		w.state = state{tries: w.state.tries + 1}
		w.wake()
	}
}

// Knows reports whether that version is the latest: a Wait for another one makes no read, where
// reads are linearizable.
func (w *Watch) Knows(version string) bool {
	_, ok := w.latest(version)
	return ok
}

// Began reports whether Again was ever called.
func (w *Watch) Began() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.tries > 0
}

// Tell passes a change on, or what is stored as the watch begins: the record, Record{Key: key} for
// a deletion, or why it can't be read, and its revision. Revisions rise with each change of the
// key. A change that is told twice, or after a later one, does no harm. Revision 0 is that of a key
// that isn't stored, where the server has no number for that: call [Watch.Rewind] before.
func (w *Watch) Tell(revision uint64, rec store.Record, err error) {
	w.change(func(st *state) {
		st.tries, st.ended = max(st.tries, 1), false
		if revision > st.revision || revision == 0 && st.revision == 0 {
			*st = state{tries: st.tries, revision: revision, rec: rec, err: err, at: st.tries, shown: st.shown}
		}
	})
}

// Show says that the store shows the record to a caller, as of that revision. No Wait whose reads
// are linearizable returns an older one from then on.
func (w *Watch) Show(revision uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.shown = max(w.state.shown, revision)
}

// learn takes note of a read that began when the server's watch had begun, failed or ended so many
// times.
func (w *Watch) learn(tries int, rec store.Record, revision uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.state
	if st.tries != tries || revision < st.revision {
		return
	}
	w.state = state{tries: tries, revision: revision, rec: rec.Clone(), at: tries, ended: st.ended, shown: st.shown}
	if st.rec.Version != rec.Version {
		w.wake()
	}
}

// latest returns what is known if that is the version.
func (w *Watch) latest(version string) (st state, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.state.isLatest(version)
}

func (w *Watch) change(f func(*state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.state)
	w.wake()
}

// wake has all Waits look at the state. mu is held.
func (w *Watch) wake() {
	close(w.turn)
	w.turn = make(chan struct{})
}

// Reader is how an engine reads for a Wait.
type Reader struct {
	// Read is [store.Load], and returns the revision up to which it saw all changes of the key.
	// Where reads are linearizable that is 0 if it isn't known: what is told after such a read is
	// read. Where a server may lag, it tries to read from one that has seen floor.
	Read func(ctx context.Context, key string, floor uint64) (rec store.Record, revision uint64, err error)
	// Floor is the revision of the version that is waited to change, where it has one.
	Floor uint64
	// Passing reports whether an error of Read passes by itself. The first Read's errors are
	// returned all the same, for then something may be set up wrongly.
	Passing func(err error) bool
	// Confirm: the server may tell a change before Read shows it. Then a Wait reads once more, so
	// that no read after it shows less.
	Confirm bool
	// Linearizable: Read is. Then what it returned stands until the watch is told otherwise, or
	// ends: a Wait that begins with that version, or the one that was told since, makes no read.
	// The store says by [Watch.Show] what else it shows.
	Linearizable bool
}

// Wait is [store.Waiter]'s. It returns [store.ErrClosed] when life, the store's, has ended.
func (w *Watch) Wait(ctx, life context.Context, version string, r Reader) (store.Record, error) {
	ctx, cancel := Within(ctx, life)
	defer cancel()
	rec, err := w.wait(ctx, life.Done(), version, r)
	if errors.Is(err, store.ErrClosed) {
		return store.Record{}, store.ErrClosed
	}
	return rec, err
}

func (w *Watch) wait(ctx context.Context, closing <-chan struct{}, version string, r Reader) (store.Record, error) {
	o := one{Watch: w, Reader: r, version: version}
	st, err := w.after(ctx, closing, func(st state) bool { return st.tries > 0 })
	if err != nil {
		return store.Record{}, err
	}
	if r.Linearizable && st.isLatest(version) {
		o.began, o.blind, o.seen = true, st.revision == 0, st
	}
	for known := o.began; ; known = false {
		if !known {
			if rec, over, err := o.read(ctx, closing); over || err != nil {
				return rec, err
			}
		}
		st, err := w.after(ctx, closing, func(st state) bool { return o.news(st) || st.tries > o.seen.tries })
		switch {
		case err != nil:
			return store.Record{}, err
		case o.news(st) && o.counts(st):
			return st.rec.Clone(), st.err
		case o.news(st):
			o.told, o.seen.tries = st, st.tries-1
		}
	}
}

// one is one Wait.
type one struct {
	*Watch
	Reader
	version string

	blind bool // version has no revision: what is told may be older
	// A read has succeeded, or none was needed: from now on it puts up with failures that pass.
	began bool
	seen  state // its tries and revision say up to when version was the latest
	told  state // of a change that is to be confirmed
}

// news reports whether the watch was told another version, after the one that is waited to change.
func (o *one) news(st state) bool {
	return st.revision > o.seen.revision && (st.err != nil || st.rec.Version != o.version)
}

// counts reports whether what the watch was told is as good as a read.
func (o *one) counts(st state) bool {
	return !o.Confirm && !o.blind && (!o.Linearizable || st.shown <= st.revision)
}

// read reads as soon as the server's watch has begun, failed or ended once more. It reports true if
// the Wait is over, with that record.
func (o *one) read(ctx context.Context, closing <-chan struct{}) (rec store.Record, over bool, err error) {
	for {
		st, err := o.after(ctx, closing, func(st state) bool { return st.tries > o.seen.tries })
		if err != nil {
			return store.Record{}, true, err
		}
		rec, revision, err := o.Read(ctx, o.key, max(o.Floor, o.told.revision))
		switch {
		case err == nil && o.Confirm && revision < o.told.revision:
			return o.told.rec.Clone(), true, o.told.err
		case err == nil:
			if o.Linearizable {
				o.learn(st.tries, rec, revision)
			}
			if o.blind = o.Linearizable && revision == 0; o.blind {
				revision = st.revision
			}
			o.began, o.seen = true, state{tries: st.tries, revision: revision}
			return rec, rec.Version != o.version, nil
		case !o.began || ctx.Err() != nil || !o.Passing(err):
			return rec, true, err
		}
		if err := Pause(ctx, closing, RetryMax); err != nil {
			return store.Record{}, true, err
		}
	}
}

// after blocks until the watch is in a state that will do.
func (w *Watch) after(ctx context.Context, closing <-chan struct{}, willDo func(state) bool) (state, error) {
	for {
		w.mu.Lock()
		st, turn := w.state, w.turn
		w.mu.Unlock()
		if willDo(st) {
			return st, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return state{}, context.Cause(ctx)
		case <-closing:
			return state{}, store.ErrClosed
		}
	}
}

// Pause blocks for d, less up to a half at random, so that a thousand watches don't come back at
// one moment. It returns the cause when ctx ends, and [store.ErrClosed] when closing is closed.
func Pause(ctx context.Context, closing <-chan struct{}, d time.Duration) error {
	timer := clock.NewTimer(clock.System(), d-rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-closing:
		return store.ErrClosed
	}
}
