package zookeeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// The pauses between two tries to set a watch, or to read, and between two looks at a row whose
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
	return watcher.Wait(ctx, s.watches, key, version, watcher.Reader{
		Read: s.readForWait, Passing: func(error) bool { return false }, Linearizable: true,
	})
}

// readForWait is [watcher.Reader]'s Read. It asks again until the server has answered.
func (s *Store) readForWait(ctx context.Context, key string, _ uint64) (store.Record, uint64, error) {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		var session int64
		f, err := fresh(ctx, s, &session, readNode(s.node(key)))
		if settled(err) || ctx.Err() != nil {
			r, err := s.rowOf(key, f, err)
			return r.rec, uint64(r.mzxid), err
		}
		_ = s.rest(ctx, pause) // its error is ctx's
	}
}

// settled reports whether asking again would bring the same error.
func settled(err error) bool {
	var unsent unsentError
	return errors.As(err, &unsent) || answered(err)
}

// rest sleeps for d, less up to a half at random.
func (s *Store) rest(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, s.clock, d-rand.N(d/2))
}

// follow has a watch at the server, until ctx ends, or nobody waits and it has fired or was lost. A
// watch at the server is set together with a read of the row, and a change of that row fires it. It
// can't be taken back, so it is kept until it fires even when nobody waits.
func (s *Store) follow(ctx context.Context, key string, w *watcher.Watch) {
	for pause, over := retryMin, false; !over && ctx.Err() == nil; over = s.watches.Retire(key) {
		r, rowErr, fired, err := s.setWatch(ctx, key)
		if err != nil {
			if settled(err) {
				w.Ended() // who waits reads, and is told what the server refuses
			}
			_ = s.rest(ctx, pause) // its error is ctx's
			pause = min(2*pause, retryMax)
			continue
		}
		pause = retryMin
		// The server at hand may be behind, or have been put back to a copy: then who waits reads.
		w.Rewind(uint64(r.mzxid))
		w.Tell(uint64(r.mzxid), r.rec, rowErr)
		s.silence(ctx, key, r, fired)
	}
}

// setWatch asks the server for a watch, and returns the row that was read when it was set, or why
// that can't be read.
func (s *Store) setWatch(ctx context.Context, key string) (r row, rowErr error, fired <-chan zk.Event, err error) {
	path := s.node(key)
	for err = s.session(ctx); err == nil; {
		var f found
		f.data, f.stat, fired, err = s.conn.GetW(path)
		if errors.Is(err, zk.ErrNoNode) {
			var exists bool
			if exists, _, fired, err = s.conn.ExistsW(path); exists {
				continue // made in between
			}
			if err == nil {
				err = zk.ErrNoNode
			}
		}
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			r, rowErr = s.rowOf(key, f, err)
			return r, rowErr, fired, nil
		}
	}
	return row{}, nil, nil, err
}

// silence blocks until the watch fires that was set when the row was read, or the row is another
// one: the client can miss a change while it reconnects, so the row is read now and then while
// somebody waits.
func (s *Store) silence(ctx context.Context, key string, was row, fired <-chan zk.Event) {
	for {
		timer := clock.NewTimer(s.clock, checkMin+rand.N(checkMax-checkMin))
		select {
		case <-fired:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if s.watches.Waiters(key) == 0 {
			continue
		}
		f, err := call(ctx, s, readNode(s.node(key)))
		if r, rowErr := s.rowOf(key, f, err); answered(err) && rowErr == nil && r.rec.Version != was.rec.Version {
			return
		}
	}
}
