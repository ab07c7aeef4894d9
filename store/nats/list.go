package nats

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// atOnce is how many records List asks for at once.
const atOnce = 64

// List implements [store.Store]. It asks the stream's leader for the names of all subjects, and
// then for the last message of each that has the prefix, 64 at once: one request a record. A
// consumer would be quicker. But it delivers what a replica has, and skips a record that is written
// while the consumer passes by.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		keys, err := s.keys(ctx, prefix)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for batch := range slices.Chunk(keys, atOnce) {
			for _, r := range s.readAll(ctx, batch) {
				if r.err == nil && r.rec.Version == "" {
					continue // deleted
				}
				if !yield(r.rec, r.err) {
					return
				}
				if r.fatal {
					return
				}
			}
		}
	}
}

// keys returns all keys with the prefix, as the bucket has them, those that were deleted included.
func (s *Store) keys(ctx context.Context, prefix string) ([]string, error) {
	if err := driver.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var info *jetstream.StreamInfo
	err := s.bounded(ctx, func(ctx context.Context) (err error) {
		info, err = s.stream.Info(ctx, jetstream.WithSubjectFilter(s.subject(jetstream.AllKeys)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list of prefix %q: %w", prefix, Explain(err))
	}
	var keys []string
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		key := strings.TrimPrefix(subject, s.subject(""))
		if strings.HasPrefix(key, encode(prefix)) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// reading is what came out of the reading of one key.
type reading struct {
	rec   store.Record
	err   error
	fatal bool // err is about more than this key
}

func (s *Store) readAll(ctx context.Context, keys []string) []reading {
	results := make([]reading, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() { results[i] = s.read(ctx, key) })
	}
	all.Wait()
	return results
}

// read reads one key, as the bucket has it.
func (s *Store) read(ctx context.Context, key string) reading {
	if err := s.ready(ctx); err != nil {
		return reading{err: err, fatal: true}
	}
	msg, err := s.last(ctx, s.subject(key))
	switch {
	case err != nil:
		return reading{err: fmt.Errorf("list: %s can't be read: %w", key, Explain(err)), fatal: true}
	case msg == nil || msg.gone():
		return reading{}
	}
	rec, err := record(key, msg.Sequence, msg.Data)
	return reading{rec: rec, err: err}
}
