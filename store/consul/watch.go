package consul

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// watch is the sequence of blocking queries for one key that all waiters for it share.
type watch struct {
	stop context.CancelFunc

	// Store.mu guards what follows.
	waiters int
	ending  func() bool // takes back the end that comes after the last waiter
	seen    sight
	next    chan struct{} // closed when there is something new to see
}

// sight is what the queries last saw.
type sight struct {
	row     row // of index 0 before the first answer
	lives   int // how often indexes began anew
	refused error
}

// follows reports whether r can be what became of an earlier row, or is it still. Otherwise indexes
// began anew.
func (r row) follows(earlier row) bool {
	return r.err == nil && earlier.index != 0 && r.index >= earlier.index
}

// linger is how long queries go on without a waiter: one that comes again soon, as they do, finds
// them under way, and a query that is cut off costs its connection.
const linger = 5 * time.Second

// join returns the watch on key, for one waiter more, or nil after Close.
func (s *Store) join(key string) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil
	}
	w := s.watches[key]
	if w == nil {
		ctx, stop := context.WithCancel(s.life)
		w = &watch{stop: stop, next: make(chan struct{})}
		s.watches[key] = w
		s.running.Go(func() {
			defer stop()
			s.follow(ctx, key, w)
		})
	}
	if w.ending != nil {
		w.ending()
		w.ending = nil
	}
	w.waiters++
	return w
}

// leave takes one waiter away. The watch ends some time after the last.
func (s *Store) leave(key string, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.waiters--
	if w.waiters > 0 || s.life.Err() != nil {
		return
	}
	w.ending = s.clock.AfterFunc(linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.waiters == 0 && s.watches[key] == w {
			delete(s.watches, key)
			w.stop()
		}
	})
}

// look returns what w last saw, and the channel that is closed when it sees something else.
func (s *Store) look(w *watch) (sight, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.seen, w.next
}

// show has the waiters look.
func (s *Store) show(w *watch, seen sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.seen = seen
	close(w.next)
	w.next = make(chan struct{})
}

// The durations of queries, and the pauses between them.
const (
	longWait  = time.Minute      // so that a connection that died without a word is found out
	shortWait = time.Second      // while there are more keys than queries
	grace     = 10 * time.Second // that an answer may come later: the server adds a sixteenth of the wait itself
	pauseMin  = 20 * time.Millisecond
	retryMax  = 2 * time.Second        // after errors
	quietMax  = 250 * time.Millisecond // after answers that say nothing new
)

// follow asks what becomes of key until ctx ends.
func (s *Store) follow(ctx context.Context, key string, w *watch) {
	var index uint64 // from which to go on; 0 answers at once
	var seen sight
	pause := pauseMin
	for ctx.Err() == nil {
		r, last, err := s.ask(ctx, key, w, index)
		limit := retryMax
		switch {
		case err != nil && refused(err) && !leaderless(err) && s.advice(err) != "":
			seen.refused = err
			s.show(w, seen)
		case err != nil:
		case seen.refused == nil && r.follows(seen.row) && r.rec.Version == seen.row.rec.Version:
			// A server that is put back to a copy answers so as well, and then waits for an index
			// that is far away. So the next query doesn't wait.
			if seen.row = r; index == 0 {
				index = last
			} else {
				index = 0
			}
			limit = quietMax
		default:
			if r.index < seen.row.index {
				seen.lives++
			}
			index, seen.row, seen.refused = last, r, nil
			s.show(w, seen)
			pause = pauseMin
			continue
		}
		_ = clock.Sleep(ctx, s.clock, pause-rand.N(pause/2)) // the loop sees the end of ctx
		pause = min(2*pause, limit)
	}
}

// ask makes one query for w, when it is its turn.
func (s *Store) ask(ctx context.Context, key string, w *watch, index uint64) (row, uint64, error) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.crowd()
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return row{}, 0, context.Cause(ctx)
		}
	}
	defer func() { <-s.slots }()
	wait := shortWait
	ctx, cancel := clock.WithTimeout(ctx, s.clock, longWait+grace)
	defer cancel()
	s.mu.Lock()
	if len(s.watches) <= cap(s.slots) {
		wait = longWait
		s.long[w] = cancel
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.long, w)
		}()
	}
	s.mu.Unlock()
	return s.read(ctx, key, index, wait)
}

// crowd ends the long queries, because there are more keys than queries now.
func (s *Store) crowd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, cancel := range s.long {
		cancel()
		delete(s.long, w)
	}
}
