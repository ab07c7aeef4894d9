package etcd

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Wait implements [store.Waiter]. It is told of the change by a watch, together with the new record: between the write and
// its return there is no further round trip. Beginning costs two: one for the watch, unless somebody waits for the
// key already, and one read.
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
	began := false
	for tries := 0; ; {
		st, err := s.after(ctx, w, func(st state) bool { return st.tries > tries })
		if err != nil {
			return store.Record{}, err
		}
		// The watch is there, or can't be had just now. What changes from here on it tells; what changed before is read.
		rec, revision, err := s.load(ctx, key)
		if began && ctx.Err() == nil && code(err) == codes.Unavailable {
			if err := s.pause(ctx, retryMax); err != nil {
				return store.Record{}, err
			}
			continue
		}
		if err != nil || rec.Version != version {
			return rec, err
		}
		began, tries = true, st.tries
		news := func(st state) bool { return st.revision > revision && (st.err != nil || st.rec.Version != version) }
		st, err = s.after(ctx, w, func(st state) bool { return news(st) || st.tries > tries })
		if err != nil {
			return store.Record{}, err
		}
		if news(st) {
			return st.rec.Clone(), st.err
		}
	}
}

// watch is one watch in etcd, which all Waits of one store for a key share.
type watch struct {
	key     string
	waiters int // guarded by the store's mu
	cancel  context.CancelFunc

	mu    sync.Mutex
	state state
	turn  chan struct{} // closed when the state changes, and replaced
}

// state is what a watch has told.
type state struct {
	tries    int   // how often the watch began, failed to begin, or ended: each time whoever waits has to read
	revision int64 // of the latest change; 0 before the first one
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
	w, ok := s.watches[key]
	if !ok {
		ctx, cancel := context.WithCancel(s.watching)
		w = &watch{key: key, cancel: cancel, turn: make(chan struct{})}
		s.watches[key] = w
		s.running.Go(func() { s.serve(ctx, w) })
	}
	w.waiters++
	return w, nil
}

// leave takes one waiter away, and ends a watch that has no more.
func (s *Store) leave(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiters--; w.waiters == 0 {
		w.cancel()
		delete(s.watches, w.key)
	}
}

// The bounds of the pause before a watch that ended is begun anew, and before a read that failed is repeated.
const (
	retryMin = 10 * time.Millisecond
	retryMax = time.Second
)

// serve keeps up the watch until ctx ends.
//
// It always begins at the present, never at the revision of a read: etcd tells a watch that begins in the past, by one
// revision of any key, nothing before its next round for such watches, which comes every 100 ms. The client resumes after a
// lost connection by itself, without a gap. The watch ends when the revision to resume from has been compacted, and when the
// member has lost its leader; then it begins at the present again, and whoever waits reads.
func (s *Store) serve(ctx context.Context, w *watch) {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		for resp := range s.watcher.Watch(ctx, s.prefix+w.key, clientv3.WithCreatedNotify()) {
			if resp.Created && resp.Err() == nil {
				pause = retryMin
				w.change(func(st *state) { st.tries++ })
			}
			if n := len(resp.Events); n > 0 {
				w.tell(s.event(w.key, resp.Events[n-1]))
			}
		}
		if ctx.Err() != nil {
			return
		}
		w.change(func(st *state) { st.tries++ })
		if s.pause(ctx, pause) != nil {
			return
		}
	}
}

// event returns what a change says: the latest one of a response is enough.
func (s *Store) event(key string, ev *clientv3.Event) state {
	st := state{revision: ev.Kv.ModRevision, rec: store.Record{Key: key}}
	if ev.Type == clientv3.EventTypePut {
		st.rec, st.err = s.record(ev.Kv)
	}
	return st
}

// tell passes a change on to those who wait. After a lost connection one may come twice.
func (w *watch) tell(news state) {
	w.change(func(st *state) {
		if news.revision > st.revision {
			news.tries = st.tries
			*st = news
		}
	})
}

func (w *watch) change(f func(*state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.state)
	close(w.turn)
	w.turn = make(chan struct{})
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

// pause blocks for d, less up to a half at random, so that a thousand watches don't come back at one moment.
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
