package nats

import (
	"context"
	"errors"
	"net/http"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. A consumer reports the change, together with the new record. So
// there is no further round trip between the write and its return, or one read where the bucket has
// replicas. Beginning costs two round trips: one for the consumer, unless there is one already, and
// one read. With replicas there is one more, to find the leader.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	s.lookAgain()
	w, err := s.join(key)
	if err != nil {
		return store.Record{}, err
	}
	defer s.leave(w)
	floor, _ := sequenceOf(version)
	return w.Wait(ctx, s.watching, version, watcher.Reader{
		Read: s.loadFrom, Floor: floor, Confirm: s.config.Load().Replicas > 1,
		Passing: passing,
	})
}

// passing reports whether an error says that there is no answer just now: none came, or the servers
// have no leader.
func passing(err error) bool {
	refusal := new(jetstream.APIError)
	return errors.Is(err, errNoAnswer) || errors.Is(err, natsgo.ErrNoResponders) || errors.As(err, &refusal) && refusal.Code == http.StatusServiceUnavailable
}

// watch is what the Waits of one store for one key share.
type watch struct {
	*watcher.Watch
	key     string // as the bucket has it
	waiters int    // guarded by the store's mu, as is
	feed    *feed  // what tells it
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
		w = &watch{Watch: watcher.New(key), key: encoded, feed: s.feedFor(encoded)}
		if w.feed.began {
			w.Again()
		}
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

// tell passes a change on. After the server began a consumer anew, old ones may come again.
func (w *watch) tell(entry jetstream.KeyValueEntry) {
	key, err := decode(w.key)
	rec := store.Record{Key: key}
	if entry.Operation() == jetstream.KeyValuePut {
		rec, err = record(w.key, entry.Revision(), entry.Value())
	}
	w.Tell(entry.Revision(), rec, err)
}
