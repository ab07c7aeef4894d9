package etcd

import (
	"context"
	"errors"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// Put implements [store.Store]. It is one round trip, whatever comes out.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	value, err := store.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	revision, ok := revisionOf(rec.Version)
	if !ok {
		return store.Record{}, s.mismatch(ctx, rec.Key)
	}
	resp, err := s.write(ctx, rec.Key, revision, clientv3.OpPut(s.prefix+rec.Key, string(value)))
	if err != nil {
		return store.Record{}, err
	}
	stored := store.Canonical(rec)
	stored.Version = versionOf(resp.Header.Revision)
	return stored, nil
}

// Delete implements [store.Store]. It is one round trip, whatever comes out.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	revision, ok := revisionOf(version)
	if !ok || revision == 0 {
		return s.mismatch(ctx, key)
	}
	_, err := s.write(ctx, key, revision, clientv3.OpDelete(s.prefix+key))
	return err
}

// write does op if the key's mod revision is that one; 0 is that of a key that isn't stored. Otherwise it returns what is
// there instead, out of the same transaction.
func (s *Store) write(ctx context.Context, key string, revision int64, op clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	tries := &attempts{}
	resp, err := s.kv.Txn(context.WithValue(ctx, attemptsKey{}, tries)).
		If(clientv3.Compare(clientv3.ModRevision(s.prefix+key), "=", revision)).
		Then(op).
		Else(clientv3.OpGet(s.prefix + key)).
		Commit()
	switch {
	case err != nil:
		return nil, tries.failed(ctx, key, err)
	case resp.Succeeded:
		return resp, nil
	case !tries.certain():
		return nil, store.Unknown(key, errors.New("the client sent the write more than once, and only the last copy was answered"))
	}
	kvs := resp.Responses[0].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return nil, store.NotFound(key)
	}
	current, err := s.record(kvs[0])
	if err != nil {
		return nil, err
	}
	return nil, &store.ConflictError{Current: current}
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

// revisionOf returns the mod revision that a version stands for, 0 for "". It reports false for what no version looks like.
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
