package consul

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// row is a record as it was at some Raft entry, or that it wasn't there.
type row struct {
	rec   store.Record // Version is "" when there is none
	index uint64       // the entry that wrote it; when there is none, one at which there was none
	err   error        // it can't be read
}

// parseVersion returns the index that a version is. It reports false for what no record ever had.
func parseVersion(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && n > 0 && formatVersion(n) == text
}

func formatVersion(n uint64) string { return strconv.FormatUint(n, 10) }

// rowOf reads a pair of Consul's.
func rowOf(key string, pair *api.KVPair) row {
	rec, err := driver.Unmarshal(pair.Value)
	if err != nil {
		return row{index: pair.ModifyIndex, err: driver.Corrupt(key, fmt.Errorf("the value of Consul's key %s: %w", pair.Key, err))}
	}
	rec.Key, rec.Version = key, formatVersion(pair.ModifyIndex)
	return row{rec: rec, index: pair.ModifyIndex}
}

// read returns what is stored under key. With an index it blocks until that is something else than
// it was at that index, or may be, or wait is over. last is the index to go on from.
func (s *Store) read(ctx context.Context, key string, index uint64, wait time.Duration) (r row, last uint64, err error) {
	pair, meta, err := s.client.KV().Get(s.prefix+encode(key), s.query(ctx, index, wait))
	if err != nil {
		return row{}, 0, err
	}
	if last = meta.LastIndex; last == 0 {
		return row{}, 0, errStranger
	}
	if pair == nil {
		return row{rec: store.Record{Key: key}, index: last}, last, nil
	}
	return rowOf(key, pair), last, nil
}

// load is read without waiting, for callers of the store.
func (s *Store) load(ctx context.Context, key string) (row, error) {
	r, _, err := s.read(ctx, key, 0, 0)
	if err != nil {
		return row{}, fmt.Errorf("%s: %w", key, s.failed(ctx, err))
	}
	return r, r.err
}

// Get implements [store.Store]. It takes one round trip.
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	r, err := s.load(ctx, key)
	if err == nil && r.rec.Version == "" {
		return store.Record{}, driver.NotFound(key)
	}
	return r.rec, err
}

// pairs returns all that is under a prefix of Consul's keys.
func (s *Store) pairs(ctx context.Context, prefix string) (api.KVPairs, error) {
	pairs, meta, err := s.client.KV().List(prefix, s.query(ctx, 0, 0))
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	if meta.LastIndex == 0 {
		return nil, s.failed(ctx, errStranger)
	}
	if meta.ResultsFilteredByACLs {
		return nil, fmt.Errorf("consul keeps records back from this token: give it a policy with key_prefix %q { policy = \"read\" }", s.prefix)
	}
	// From those who have no token, Consul keeps back that it kept anything back.
	if len(pairs) == 0 {
		if _, _, err := s.client.KV().Get(prefix, s.query(ctx, 0, 0)); err != nil {
			return nil, s.failed(ctx, err)
		}
	}
	return pairs, nil
}

// List implements [store.Store]. It takes one round trip, two when there is nothing. It yields the
// records of that moment, sorted by key as Consul has it.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		if err := s.ready(ctx); err != nil {
			yield(store.Record{}, err)
			return
		}
		pairs, err := s.pairs(ctx, s.prefix+common(prefix))
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for _, pair := range pairs {
			if ctx.Err() != nil {
				yield(store.Record{}, context.Cause(ctx))
				return
			}
			if !s.yieldPair(pair, prefix, yield) {
				return
			}
		}
	}
}

// yieldPair yields a pair if it is under the prefix, and reports whether to go on.
func (s *Store) yieldPair(pair *api.KVPair, prefix string, yield func(store.Record, error) bool) bool {
	name := strings.TrimPrefix(pair.Key, s.prefix)
	if name == "" { // the folder itself, which Consul's page makes
		return true
	}
	key, ok := decode(name)
	if !ok || driver.CheckKey(key) != nil {
		return !strings.HasPrefix(name, prefix) || yield(store.Record{}, driver.Corrupt(name, errForeignName))
	}
	if !strings.HasPrefix(key, prefix) {
		return true
	}
	r := rowOf(key, pair)
	return yield(r.rec, r.err)
}
