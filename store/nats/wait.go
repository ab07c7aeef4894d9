package nats

import (
	"context"
	"errors"
	"net/http"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// Wait implements [store.Waiter]. A consumer reports the change, together with the new record. So
// there is no further round trip between the write and its return, or one read where the bucket has
// replicas. Beginning costs two round trips: one for the consumer, unless there is one already, and
// one read. With replicas there is one more, to find the leader.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	s.lookAgain()
	floor, _ := sequenceOf(version)
	return watcher.Wait(ctx, s.watches, key, version, watcher.Reader{
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
	feed  *feed // what tells it
	leave func()
}

// begin is [watcher.Kind]'s Begin.
func (s *Store) begin(_ context.Context, key string) *watch {
	f, leave := s.feedFor(key)
	w := &watch{watcher.New(key), f, leave}
	if f.began.Load() {
		w.Again()
	}
	return w
}

// tell passes a change on. After the server began a consumer anew, old ones may come again.
func (w *watch) tell(key string, entry jetstream.KeyValueEntry) {
	rec, err := store.Record{Key: key}, error(nil)
	if entry.Operation() == jetstream.KeyValuePut {
		rec, err = record(entry.Key(), entry.Revision(), entry.Value())
	}
	w.Tell(entry.Revision(), rec, err)
}
