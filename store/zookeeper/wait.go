package zookeeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// watch is one watch at the server, which all waiters for a key share, and the row that was read
// when it was set. A change of that row fires it. It can't be taken back, so it is kept until it
// fires even when nobody waits.
type watch struct {
	set chan struct{} // closed when the server has answered: then what follows is there

	row     row
	err     error // of the row: it can't be read
	session int64 // in which the row was read, if in one
	lost    error // there is no watch, because of this
	fired   <-chan zk.Event

	spent   chan struct{} // closed when the row was found to be another one though the watch had not fired
	mu      sync.Mutex    // guards what follows, and the closing of spent
	checked clock.Instant // when the row was last read
}

// watches are those of a store.
type watches struct {
	byKey map[string]*watch
	limit int // of watches, beyond which those that have fired are forgotten
}

// over reports whether w tells nothing any more.
func (w *watch) over() bool {
	select {
	case <-w.set:
	default:
		return false
	}
	select {
	case <-w.fired:
	case <-w.spent:
	default:
		return w.lost != nil
	}
	return true
}

// watch returns the watch on a key that was not over a moment ago. It is set if there is none.
func (s *Store) watch(key string) *watch {
	w, ok := s.watchOf(key)
	if !ok && !s.begin(func() { s.setWatch(key, w) }) {
		w.lost = unsentError{store.ErrClosed}
		close(w.set)
	}
	return w
}

// watchOf returns the watch on a key, and whether it is being set already.
func (s *Store) watchOf(key string) (*watch, bool) {
	const least = 64
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches.byKey[key]; w != nil && !w.over() {
		return w, true
	}
	if len(s.watches.byKey) >= max(s.watches.limit, least) {
		for key, w := range s.watches.byKey {
			if w.over() {
				delete(s.watches.byKey, key)
			}
		}
		s.watches.limit = 2 * len(s.watches.byKey)
	}
	w := &watch{set: make(chan struct{}), spent: make(chan struct{})}
	s.watches.byKey[key] = w
	return w, false
}

// setWatch asks the server for w.
func (s *Store) setWatch(key string, w *watch) {
	defer close(w.set)
	path := s.node(key)
	for w.lost = s.session(s.life); w.lost == nil; {
		session := s.conn.SessionID()
		data, stat, fired, err := s.conn.GetW(path)
		if errors.Is(err, zk.ErrNoNode) {
			var exists bool
			if exists, _, fired, err = s.conn.ExistsW(path); exists {
				continue // made in between
			}
			if err == nil {
				err = zk.ErrNoNode
			}
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			w.lost = err
			return
		}
		w.fired = fired
		w.row, w.err = s.rowOf(key, found{data, stat}, err)
		if s.conn.SessionID() == session {
			w.session = session
		}
		w.checked = s.clock.Now()
		return
	}
}

// follows reports whether r, read when the watch was set, is what the record became after old.
func (w *watch) follows(old *watch) bool {
	if old == nil {
		return false
	}
	if w.row.mzxid != 0 && old.row.mzxid != 0 {
		return w.row.mzxid > old.row.mzxid
	}
	return w.session != 0 && w.session == old.session // a session doesn't go back in time
}

// The pauses of waiters: between two tries to set a watch, and between two looks at a row whose
// watch is silent.
const (
	retryMin = 20 * time.Millisecond
	retryMax = time.Second
	checkMin = 5 * time.Second
	checkMax = 10 * time.Second
)

// Wait implements [store.Waiter]. The server reports the change. Wait continues when the connection
// is lost or the session expires, and ends with an error when the server refuses to let it read.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	// A read under way, too, ends with Close.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(store.ErrClosed) })()
	var base *watch // whose row had that version
	pause := retryMin
	for {
		if ctx.Err() != nil {
			return store.Record{}, context.Cause(ctx)
		}
		w := s.watch(key)
		if err := s.await(ctx, w.set); err != nil {
			return store.Record{}, err
		}
		lost := w.lost
		switch {
		case lost != nil:
		case w.err == nil && w.row.rec.Version == version:
			base = w
		case w.err == nil && w.follows(base):
			return w.row.rec.Clone(), nil
		default:
			// The server at hand may be behind the version that is waited on.
			var session int64
			var f found
			if f, lost = fresh(ctx, s, &session, readNode(s.node(key))); answered(lost) {
				r, err := s.rowOf(key, f, lost)
				if err != nil || r.rec.Version != version {
					return r.rec, err
				}
				lost = nil
			}
		}
		if lost != nil {
			if err := s.retry(ctx, key, lost, pause); err != nil {
				return store.Record{}, err
			}
			pause = min(2*pause, retryMax)
			continue
		}
		pause = retryMin
		if err := s.silence(ctx, key, w); err != nil {
			return store.Record{}, err
		}
	}
}

// await waits until done is closed.
func (s *Store) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return store.ErrClosed
	}
}

// retry returns nil after a pause when it makes sense to begin anew what was lost: to set a watch,
// or to read.
func (s *Store) retry(ctx context.Context, key string, lost error, pause time.Duration) error {
	var unsent unsentError
	if errors.As(lost, &unsent) || answered(lost) {
		return s.readError(s.node(key), lost)
	}
	timer := clock.NewTimer(s.clock, pause-rand.N(pause/2))
	defer timer.Stop()
	return s.await(ctx, timer.C)
}

// silence waits until w is over. The client can miss a change while it reconnects, so the row is
// read now and then.
func (s *Store) silence(ctx context.Context, key string, w *watch) error {
	for {
		timer := clock.NewTimer(s.clock, checkMin+rand.N(checkMax-checkMin))
		select {
		case <-w.fired:
		case <-w.spent:
		case <-timer.C:
			if err := s.check(ctx, key, w); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-s.life.Done():
			timer.Stop()
			return store.ErrClosed
		}
		timer.Stop()
		return nil
	}
}

// check reads the row of w, unless another waiter did a moment ago, and ends w if it is another
// one.
func (s *Store) check(ctx context.Context, key string, w *watch) error {
	now := s.clock.Now()
	w.mu.Lock()
	recent := now.Sub(w.checked) < checkMin
	if !recent {
		w.checked = now
	}
	w.mu.Unlock()
	if recent {
		return nil
	}
	path := s.node(key)
	f, err := call(ctx, s, readNode(path))
	if !answered(err) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil // the next look tells
	}
	if r, err := s.rowOf(key, f, err); err == nil && r.rec.Version != w.row.rec.Version {
		w.mu.Lock()
		defer w.mu.Unlock()
		select {
		case <-w.spent:
		default:
			close(w.spent)
		}
	}
	return nil
}
