package consul

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// Wait implements [store.Waiter]. The server reports the change. Wait continues when the connection
// is lost or Consul has no leader, and ends with an error when Consul refuses to let it read.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return watcher.Wait(ctx, s.watches, key, version, watcher.Reader{
		Read: func(ctx context.Context, key string, _ uint64) (store.Record, uint64, error) {
			r, err := s.load(ctx, key)
			return r.rec, r.index, err
		},
		Passing:      func(err error) bool { return !s.denied(err) },
		Linearizable: true,
	})
}

// denied reports whether Consul refuses to let the store read, and will do so until somebody
// changes that.
func (s *Store) denied(err error) bool {
	return refused(err) && !leaderless(err) && s.advice(err) != ""
}

// Queries continue for a while without a waiter: a query that is cut off costs its connection.
const (
	linger  = 5 * time.Second
	maxIdle = 1024
)

// begin returns a watch whose Waits may read at once: whenever the first query is answered, it
// tells what is stored then.
func begin(_ context.Context, key string) *watcher.Watch {
	w := watcher.New(key)
	w.Again()
	return w
}

// The durations of queries, and the pauses between them.
const (
	longWait  = time.Minute // so that a connection that died without a word is found out
	shortWait = time.Second // while there are more keys than queries
	// That an answer may come later: the server adds a sixteenth of the wait itself.
	grace    = 10 * time.Second
	pauseMin = 20 * time.Millisecond
	retryMax = 2 * time.Second        // after errors
	quietMax = 250 * time.Millisecond // after answers that say nothing new
)

// follow asks what becomes of key until ctx ends, by one blocking query after another.
func (s *Store) follow(ctx context.Context, key string, w *watcher.Watch) {
	var index uint64 // from which to go on; 0 answers at once
	var seen row     // of index 0 before the first answer
	denied, pause := false, pauseMin
	for ctx.Err() == nil {
		r, last, err := s.ask(ctx, key, w, index)
		limit := retryMax
		switch {
		case err != nil && !denied && s.denied(err):
			denied = true
			w.Ended() // who waits reads, and is told why
		case err != nil:
		case !denied && r.follows(seen) && r.rec.Version == seen.rec.Version:
			// A server that is put back to a copy answers so as well, and then waits for an index
			// that is far away. So the next query doesn't wait.
			if seen = r; index == 0 {
				index = last
			} else {
				index = 0
			}
			limit = quietMax
		default:
			index, seen, denied = last, r, false
			w.Rewind(r.index) // after the data were put back to a copy
			w.Tell(r.index, r.rec, r.err)
			pause = pauseMin
			continue
		}
		_ = clock.Sleep(ctx, s.clock, pause-rand.N(pause/2)) // the loop sees the end of ctx
		pause = min(2*pause, limit)
	}
}

// follows reports whether r can be what became of an earlier row, or is it still. Otherwise indexes
// began again.
func (r row) follows(earlier row) bool {
	return r.err == nil && earlier.index != 0 && r.index >= earlier.index
}

// ask makes one query for w, when it is its turn.
func (s *Store) ask(ctx context.Context, key string, w *watcher.Watch, index uint64) (row, uint64, error) {
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
	if s.watches.Len() <= cap(s.slots) {
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
