// Package watches serves the Waits of an engine whose server tells every change together with the new record, in order, as
// long as the engine's watch stands.
//
// All Waits of a store for one key share a [Watch], which the engine tells what its server tells it. A Wait reads when the
// server's watch has begun, so nothing between the two is lost, and each time that it ended or was begun anew. From
// then on what the watch is told is as good as a read: a Wait returns it without a further round trip.
package watches

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// The bounds of the pause before a watch of the server's that ended is begun anew, and before a read that failed is repeated.
const (
	RetryMin = 10 * time.Millisecond
	RetryMax = time.Second
)

// Watch is what all Waits of a store for one key share. Its methods may be called from any goroutine.
type Watch struct {
	key string

	mu    sync.Mutex
	state state
	turn  chan struct{} // closed when the state changes, and replaced
}

// state is what a watch was told.
type state struct {
	tries    int    // how often the server's watch began, failed to begin, or ended
	revision uint64 // of the latest change; 0 before the first one
	rec      store.Record
	err      error
}

// New returns a watch on key that was told nothing yet.
func New(key string) *Watch { return &Watch{key: key, turn: make(chan struct{})} }

// Again says that the server's watch began, failed to begin, or ended: whoever waits reads.
func (w *Watch) Again() { w.change(func(st *state) { st.tries++ }) }

// Began reports whether Again was ever called.
func (w *Watch) Began() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.tries > 0
}

// Tell passes a change on: the record, Record{Key: key} for a deletion, or why it can't be read, and its revision. Revisions
// rise with each change of the key, and are never 0. A change that is told twice, or after a later one, does no harm.
func (w *Watch) Tell(revision uint64, rec store.Record, err error) {
	w.change(func(st *state) {
		if revision > st.revision {
			*st = state{tries: st.tries, revision: revision, rec: rec, err: err}
		}
	})
}

func (w *Watch) change(f func(*state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.state)
	close(w.turn)
	w.turn = make(chan struct{})
}

// Reader is how an engine reads for a Wait.
type Reader struct {
	// Read is [store.Load], and returns the revision up to which it saw all changes of the key. Where a server may lag, it tries
	// to read from one that has seen floor.
	Read func(ctx context.Context, key string, floor uint64) (rec store.Record, revision uint64, err error)
	// Floor is the revision of the version that is waited to change, where it has one.
	Floor uint64
	// Passing reports whether an error of Read passes by itself. The first Read's errors are returned all the same, for
	// then something may be set up wrongly.
	Passing func(err error) bool
	// Confirm: the server may tell a change before Read shows it. Then a Wait reads once more, so that no read after it
	// shows less.
	Confirm bool
}

// Wait is [store.Waiter]'s. It returns [store.ErrClosed] when life, the store's, has ended.
func (w *Watch) Wait(ctx, life context.Context, version string, r Reader) (store.Record, error) {
	// A read under way, too, ends with it.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(store.ErrClosed) })()
	rec, err := w.wait(ctx, life.Done(), version, r)
	if errors.Is(err, store.ErrClosed) {
		return store.Record{}, store.ErrClosed
	}
	return rec, err
}

func (w *Watch) wait(ctx context.Context, closing <-chan struct{}, version string, r Reader) (store.Record, error) {
	var told state // of a change that is to be confirmed
	for began, tries := false, 0; ; {
		st, err := w.after(ctx, closing, func(st state) bool { return st.tries > tries })
		if err != nil {
			return store.Record{}, err
		}
		rec, revision, err := r.Read(ctx, w.key, max(r.Floor, told.revision))
		if began && err != nil && ctx.Err() == nil && r.Passing(err) {
			if err := Pause(ctx, closing, RetryMax); err != nil {
				return store.Record{}, err
			}
			continue
		}
		if err == nil && revision < told.revision {
			return told.rec.Clone(), told.err
		}
		if err != nil || rec.Version != version {
			return rec, err
		}
		began, tries = true, st.tries
		news := func(st state) bool { return st.revision > revision && (st.err != nil || st.rec.Version != version) }
		st, err = w.after(ctx, closing, func(st state) bool { return news(st) || st.tries > tries })
		switch {
		case err != nil:
			return store.Record{}, err
		case news(st) && !r.Confirm:
			return st.rec.Clone(), st.err
		case news(st):
			told, tries = st, st.tries-1
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

// Ready returns why no operation may begin: [store.ErrClosed] when closing is closed, the cause when ctx is done.
func Ready(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return store.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Pause blocks for d, less up to a half at random, so that a thousand watches don't come back at one moment. It returns the
// cause when ctx ends, and [store.ErrClosed] when closing is closed.
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
