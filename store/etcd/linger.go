package etcd

import (
	"container/list"
	"context"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// A watch outlives its last Wait: a caller that follows a record waits again at once, and finds the
// watch unbroken.
const (
	linger  = 10 * time.Second
	maxIdle = 1024 // watches that nobody waits on; beyond, the one that was left first ends
)

// watch is one watch in etcd, which all Waits of one store for a key share. The store's mu guards
// what is below cancel.
type watch struct {
	*watcher.Watch
	key    string
	cancel context.CancelFunc

	waiters int
	idle    *list.Element // its place in the store's list while nobody waits
	left    clock.Instant // when the last Wait ended
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
		w = &watch{Watch: watcher.New(key), key: key, cancel: cancel}
		s.watches[key] = w
		s.running.Go(func() { s.serve(ctx, w) })
	}
	if w.idle != nil {
		s.idle.Remove(w.idle)
		w.idle = nil
	}
	w.waiters++
	return w, nil
}

// leave takes one waiter away. The watch ends some time after the last.
func (s *Store) leave(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiters--; w.waiters > 0 || s.closed {
		return
	}
	w.left, w.idle = clock.System().Now(), s.idle.PushBack(w)
	if s.idle.Len() > maxIdle {
		s.end(s.idle.Front())
	}
	if !s.retiring {
		s.retiring = true
		s.running.Go(s.retire)
	}
}

// end ends an idle watch. mu is held.
func (s *Store) end(idle *list.Element) {
	w := s.idle.Remove(idle).(*watch)
	w.cancel()
	delete(s.watches, w.key)
}

// retire ends watches that have been idle for long, until none is idle or the store is closed.
func (s *Store) retire() {
	for pause := linger; pause > 0; pause = s.endIdle() {
		if clock.Sleep(s.watching, clock.System(), pause) != nil {
			return
		}
	}
}

// endIdle ends the watches that have been idle for long, and returns when to look again: 0 for
// never, none is idle.
func (s *Store) endIdle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now := clock.System().Now(); s.idle.Len() > 0; {
		first := s.idle.Front()
		if rest := linger - now.Sub(first.Value.(*watch).left); rest > 0 {
			return rest
		}
		s.end(first)
	}
	s.retiring = false
	return 0
}

// show tells the watch for key, if there is one, that the store shows a caller the record as of
// that revision: see [watcher.Watch.Show].
func (s *Store) show(key string, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[key]; w != nil {
		w.Show(uint64(revision))
	}
}
