package etcd

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	rec, _, err := s.load(ctx, key)
	if err == nil && rec.Version == "" {
		return store.Record{}, driver.NotFound(key)
	}
	return rec, err
}

// load is [store.Load], and returns the revision of the store at which key was read.
func (s *Store) load(ctx context.Context, key string) (store.Record, uint64, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, 0, err
	}
	resp, err := s.get(ctx, s.prefix+key)
	if err != nil {
		return store.Record{}, 0, fmt.Errorf("%s: can't be read: %w", key, err)
	}
	if len(resp.Kvs) == 0 {
		s.show(key, resp.Header.Revision)
		return store.Record{Key: key}, uint64(resp.Header.Revision), nil
	}
	s.show(key, resp.Kvs[0].ModRevision)
	rec, err := s.record(resp.Kvs[0])
	return rec, uint64(resp.Header.Revision), err
}

// Ping asks the server for the store's prefix, as any read would: nil means that it can be reached
// and read.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.get(ctx, s.prefix, clientv3.WithCountOnly())
	return err
}

// get reads linearizably, which is etcd's default.
func (s *Store) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := s.watches.Ready(ctx); err != nil {
		return nil, err
	}
	tries := &attempts{}
	resp, err := s.kv.Get(context.WithValue(ctx, attemptsKey{}, tries), key, opts...)
	if err != nil {
		return nil, because(ctx, tries.cause(err))
	}
	return resp, nil
}

// record reads a row.
func (s *Store) record(kv *mvccpb.KeyValue) (store.Record, error) {
	key := strings.TrimPrefix(string(kv.Key), s.prefix)
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, driver.Corrupt(fmt.Sprintf("%q", kv.Key), err)
	}
	rec, err := driver.Unmarshal(kv.Value)
	if err != nil {
		return store.Record{}, driver.Corrupt(string(kv.Key), err)
	}
	rec.Key, rec.Version = key, versionOf(kv.ModRevision)
	return rec, nil
}

// page is how many records List reads at once: 16 MiB if all are of the largest size.
const page = 256

// List implements [store.Store]. It yields by key, in the order of their bytes, and reads 256
// records at a time, each page linearizably. No page asks for a revision of the past, so a
// compaction meanwhile changes nothing.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		from, end := s.prefix+prefix, clientv3.GetPrefixRangeEnd(s.prefix+prefix)
		for {
			resp, err := s.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
			if err != nil {
				yield(store.Record{}, fmt.Errorf("list of prefix %q: %w", prefix, err))
				return
			}
			for _, kv := range resp.Kvs {
				rec, err := s.record(kv)
				s.show(rec.Key, kv.ModRevision)
				if !yield(rec, err) {
					return
				}
			}
			if !resp.More {
				return
			}
			from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		}
	}
}
