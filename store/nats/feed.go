package nats

import (
	"context"
	"sync/atomic"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
)

// feed is a consumer that tells watches what changes: one of its own for each of the first keys
// that somebody waits for, and one of the whole bucket for all others. A consumer costs the server
// memory and heartbeats; one of the whole bucket gets every renewal of every lease.
type feed struct {
	began atomic.Bool // the consumer began, or failed to, at least once
}

func newFeed(context.Context, string) *feed { return new(feed) }

// narrow is how many keys get a consumer of their own.
const narrow = 32

// feedFor returns the feed for a watch on that key, until the watch leaves it. It is called by one
// goroutine at a time.
func (s *Store) feedFor(key string) (f *feed, leave func()) {
	filter := encode(key)
	if s.feeds.Len() >= narrow {
		filter = jetstream.AllKeys
	}
	f, leave, err := s.feeds.Join(filter)
	if err != nil { // the store is being closed, and the watch with it
		return new(feed), func() {}
	}
	return f, leave
}

// serve keeps up the feed's consumer until ctx ends. The consumer delivers what comes after its
// beginning. It restarts itself when a heartbeat is missing, which takes 10 s, and continues where
// it was. After the connection was lost it is begun anew at once, and whoever waits reads.
func (s *Store) serve(ctx context.Context, filter string, f *feed) {
	reconnected := s.conn.StatusChanged(natsgo.CONNECTED)
	defer s.conn.RemoveStatusListener(reconnected)
	for pause := watcher.RetryMin; ctx.Err() == nil; pause = min(2*pause, watcher.RetryMax) {
		if s.relay(ctx, filter, f, reconnected) {
			pause = watcher.RetryMin
		}
		s.again(f)
		if watcher.Pause(ctx, s.feeds.Life().Done(), pause) != nil {
			return
		}
	}
}

// relay begins a consumer and passes on what it delivers, until it ends, the connection was lost,
// or ctx ends. It reports whether the consumer began.
func (s *Store) relay(ctx context.Context, filter string, f *feed, reconnected <-chan natsgo.Status) bool {
	ctx, cancel := context.WithCancel(ctx)
	opts := []jetstream.WatchOpt{jetstream.UpdatesOnly()}
	if s.config.Load().Replicas > 1 {
		// "From now on" is what the consumer's server says, which may be ahead of the leader: it
		// has a message already that who reads from the leader next doesn't see. So it is said
		// where the leader is.
		last, err := s.lastSequence(ctx)
		if err != nil {
			cancel()
			return false
		}
		opts = append(opts, jetstream.ResumeFromRevision(last+1))
	}
	updates, err := s.updates(ctx, filter, opts...)
	defer drain(updates)
	defer cancel()
	if err != nil {
		return false
	}
	s.again(f)
	for {
		select {
		case entry, ok := <-updates:
			if !ok {
				return true
			}
			key, err := decode(entry.Key())
			if w, ok := s.watches.Get(key); ok && err == nil && w.feed == f {
				w.tell(key, entry)
			}
		case <-reconnected:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// again has everybody read who waits at the feed.
func (s *Store) again(f *feed) {
	f.began.Store(true) // before: a watch that isn't among all yet finds it
	for _, w := range s.watches.All() {
		if w.feed == f {
			w.Again()
		}
	}
}

// updates begins a consumer, which lives until ctx ends. What it returns has to be drained after
// that, after an error too.
func (s *Store) updates(ctx context.Context, filter string, opts ...jetstream.WatchOpt) (<-chan jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := clock.System().AfterFunc(answerWithin, func() { cancel(errNoAnswer) })
	watcher, err := s.kv.Watch(ctx, filter, opts...)
	late()
	if err != nil {
		defer cancel(nil)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return watcher.Updates(), nil
}

// drain waits for the end of a consumer whose context has ended. The library's goroutine would
// otherwise wait for a reader.
func drain(updates <-chan jetstream.KeyValueEntry) {
	if updates == nil {
		return
	}
	for range updates {
	}
}
