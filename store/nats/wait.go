package nats

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Wait implements [store.Waiter]. It is told of the change by a consumer, together with the new record: between the write and its
// return there is no further round trip, or one read where the bucket has replicas. Beginning costs two round trips: one for
// the consumer, unless there is one already, and one read.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	w, err := s.join(key)
	if err != nil {
		return store.Record{}, err
	}
	defer s.leave(w)
	floor, _ := sequenceOf(version)
	var told state // of a change that the leader has to confirm
	began := false
	for tries := 0; ; {
		st, err := s.after(ctx, w, func(st state) bool { return st.tries > tries })
		if err != nil {
			return store.Record{}, err
		}
		// The consumer is there, or can't be had just now. What changes from here on it tells; what changed before is read.
		rec, sequence, err := s.loadFrom(ctx, key, floor)
		if began && ctx.Err() == nil && errors.Is(err, errNoAnswer) {
			continue
		}
		if sequence < told.sequence && err == nil {
			return told.rec.Clone(), told.err
		}
		if err != nil || rec.Version != version {
			return rec, err
		}
		began, tries = true, st.tries
		news := func(st state) bool { return st.sequence > sequence && (st.err != nil || st.rec.Version != version) }
		st, err = s.after(ctx, w, func(st state) bool { return news(st) || st.tries > tries })
		if err != nil {
			return store.Record{}, err
		}
		if news(st) && s.config.Replicas <= 1 {
			return st.rec.Clone(), st.err
		}
		if news(st) {
			told, floor, tries = st, st.sequence, st.tries-1
		}
	}
}

// watch is what the Waits of one store for one key share.
type watch struct {
	key     string
	waiters int   // guarded by the store's mu, as is
	feed    *feed // what tells it

	mu    sync.Mutex
	state state
	turn  chan struct{} // closed when the state changes, and replaced
}

// state is what a watch was told.
type state struct {
	tries    int    // how often the consumer began, failed to begin, or ended: each time whoever waits has to read
	sequence uint64 // of the latest change; 0 before the first one
	rec      store.Record
	err      error
}

// join returns the watch for key, for one waiter more.
func (s *Store) join(key string) (*watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	encoded := encode(key)
	w, ok := s.watches[encoded]
	if !ok {
		w = &watch{key: encoded, feed: s.feedFor(encoded), turn: make(chan struct{})}
		w.state.tries = w.feed.tries
		w.feed.watches[encoded] = w
		s.watches[encoded] = w
	}
	w.waiters++
	return w, nil
}

// leave takes one waiter away, and ends a watch, and its feed, that has no more.
func (s *Store) leave(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiters--; w.waiters > 0 {
		return
	}
	delete(s.watches, w.key)
	delete(w.feed.watches, w.key)
	if len(w.feed.watches) == 0 {
		w.feed.cancel()
		delete(s.feeds, w.feed.filter)
	}
}

// change changes what the watch was told, and wakes those who wait.
func (w *watch) change(f func(*state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.state)
	close(w.turn)
	w.turn = make(chan struct{})
}

// tell passes a change on. One may come twice, and old ones when the server began anew.
func (w *watch) tell(entry jetstream.KeyValueEntry) {
	news := state{sequence: entry.Revision()}
	if entry.Operation() == jetstream.KeyValuePut {
		news.rec, news.err = record(w.key, entry.Revision(), entry.Value())
	} else {
		news.rec.Key, news.err = decode(w.key)
	}
	w.change(func(st *state) {
		if news.sequence > st.sequence {
			news.tries = st.tries
			*st = news
		}
	})
}

// after blocks until the watch is in a state that will do.
func (s *Store) after(ctx context.Context, w *watch, willDo func(state) bool) (state, error) {
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
		case <-s.closing:
			return state{}, store.ErrClosed
		}
	}
}

// pause blocks for d, less up to a half at random.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	timer := clock.NewTimer(clock.System(), d-rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return store.ErrClosed
	}
}
