package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// barrierKey is that of the messages of Confirm. They are deletions, so no record is there.
const barrierKey = ".confirm"

// confirmations is how often Confirm reads again since the record has changed meanwhile.
const confirmations = 100

// errUnconfirmed says that the record changed each time before it could be confirmed.
var errUnconfirmed = errors.New("the record changes faster than it can be confirmed, or the server is older than 2.11")

// Confirm implements [store.Confirmer]. It reads, and then sends a message under a key of the
// engine's own. The bucket takes that message only while the record's last message is still the one
// that was read. A majority of the replicas has to agree, so a leader that was cut off can't
// answer.
//
// It is two round trips, and needs servers of version 2.11 or later: with older ones it fails.
// While there is no majority it fails after 5 s.
func (s *Store) Confirm(ctx context.Context, key string) (store.Record, error) {
	for range confirmations {
		rec, sequence, err := s.load(ctx, key)
		if err != nil && sequence == 0 {
			return store.Record{}, err
		}
		switch refused := s.barrier(ctx, key, sequence); {
		case refused == nil && err == nil && rec.Version == "":
			return store.Record{}, driver.NotFound(key)
		case refused == nil:
			return rec, err
		case !mismatch(refused):
			return store.Record{}, fmt.Errorf("%s: can't be confirmed: %w", key, Explain(refused))
		}
		if err := watcher.Pause(ctx, s.feeds.Life().Done(), catchUp); err != nil {
			return store.Record{}, err
		}
	}
	return store.Record{}, fmt.Errorf("%s: %w", key, errUnconfirmed)
}

// barrier has a majority of the replicas agree that the last message of a key has that sequence.
func (s *Store) barrier(ctx context.Context, key string, sequence uint64) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	msg := &natsgo.Msg{Subject: s.subject(encode(barrierKey)), Header: natsgo.Header{"KV-Operation": {"DEL"}}}
	return s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequenceForSubject(sequence, s.subject(encode(key))))
		return err
	})
}

// lookEvery is how often a store that is used looks at its bucket.
const lookEvery = 30 * time.Second

// saw takes note of what the bucket is like.
func (s *Store) saw(config jetstream.StreamConfig) {
	s.config.Store(&config)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = clock.System().Now().Add(lookEvery)
}

// lookAgain looks at the bucket if that is due. It doesn't wait for the answer; Close does.
func (s *Store) lookAgain() {
	now := clock.System().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.due {
		return
	}
	s.due = now.Add(lookEvery)
	s.feeds.Go(func() {
		// What can't be seen is looked at later.
		_ = s.bounded(s.feeds.Life(), func(ctx context.Context) error {
			info, err := s.stream.Info(ctx)
			if err == nil {
				s.saw(info.Config)
			}
			return err
		})
	})
}
