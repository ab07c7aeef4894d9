package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store]. It is one round trip, whatever comes out.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	value, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	revision, ok := revisionOf(rec.Version)
	if !ok {
		return store.Record{}, s.mismatch(ctx, rec.Key)
	}
	written, err := s.write(ctx, rec.Key, revision, clientv3.OpPut(s.prefix+rec.Key, "", withValue(value)), len(value))
	if err != nil {
		return store.Record{}, err
	}
	stored := driver.Canonical(rec)
	stored.Version = versionOf(written)
	return stored, nil
}

// withValue has a put write value, which must not change any more, and not a copy of it.
func withValue(value []byte) clientv3.OpOption {
	return func(op *clientv3.Op) { op.WithValueBytes(value) }
}

// Delete implements [store.Store]. It is one round trip, whatever comes out.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	revision, ok := revisionOf(version)
	if !ok || revision == 0 {
		return s.mismatch(ctx, key)
	}
	_, err := s.write(ctx, key, revision, clientv3.OpDelete(s.prefix+key), 0)
	return err
}

// write does op, which sends about so many bytes, if the key's mod revision is that one; 0 is that
// of a key that isn't stored. It returns the revision that it made.
func (s *Store) write(ctx context.Context, key string, revision int64, op clientv3.Op, size int) (int64, error) {
	if err := s.watches.Ready(ctx); err != nil {
		return 0, err
	}
	w := &write{key: key, demanded: revision, op: op, size: size}
	sent, err := s.writes.Do(ctx, w, func() { s.alone(ctx, w) })
	switch {
	case err == nil:
		s.show(key, max(w.made, w.met))
		return w.made, w.err
	case sent:
		return 0, driver.Unknown(key, err)
	case errors.Is(err, store.ErrClosed):
		return 0, err
	}
	return 0, fmt.Errorf("%s: not written: %w", key, err)
}

// mismatch returns why a write under a version that no record ever has isn't done.
func (s *Store) mismatch(ctx context.Context, key string) error {
	current, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: current}
}

func versionOf(revision int64) string { return strconv.FormatInt(revision, 10) }

// revisionOf returns the mod revision that a version stands for, 0 for "". It reports false for
// what no version looks like.
func revisionOf(version string) (int64, bool) {
	if version == "" {
		return 0, true
	}
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil || revision <= 0 || versionOf(revision) != version {
		return 0, false
	}
	return revision, true
}
