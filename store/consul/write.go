package consul

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store]. It takes one round trip, which many at the same time share, and one
// more to read the record that is in its way.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	index, ok := parseVersion(rec.Version)
	if !ok && rec.Version != "" {
		return store.Record{}, s.inTheWay(ctx, rec.Key, rec.Version, errors.New("no record ever had this version"))
	}
	// An index of 0 demands that there is no such key.
	w := &write{key: rec.Key, version: rec.Version, op: api.KVTxnOp{Verb: api.KVCAS, Value: body, Index: index, Flags: index}}
	stored := driver.Canonical(rec)
	if err := s.write(ctx, w); err != nil {
		return store.Record{}, err
	}
	stored.Version = formatVersion(w.index)
	return stored, nil
}

// Delete implements [store.Store]. It takes one round trip, and one more to read the record that is
// in its way.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	index, ok := parseVersion(version)
	if !ok {
		return s.inTheWay(ctx, key, version, errors.New("no record ever had this version"))
	}
	// delete-cas by itself succeeds when there is no such key.
	_, err := s.change(ctx, key, version, api.KVTxnOp{Verb: api.KVCheckIndex, Index: index}, api.KVTxnOp{Verb: api.KVDeleteCAS, Index: index})
	return err
}

// change has Consul do all of ops, which are for a write to key at that version, or nothing. It
// returns the index that the first one left.
func (s *Store) change(ctx context.Context, key, version string, ops ...api.KVTxnOp) (uint64, error) {
	for i := range ops {
		s.address(&ops[i], key)
	}
	results, sent, err := s.txn(ctx, ops)
	var status api.StatusError
	if errors.As(err, &status) && status.Code == http.StatusConflict {
		return 0, s.rolledBack(ctx, key, version, status)
	}
	if err != nil {
		return 0, s.outcome(ctx, key, sent, err)
	}
	return written(key, ops[0].Key, results, 0)
}

// address has op be about a record's key.
func (s *Store) address(op *api.KVTxnOp, key string) {
	op.Key, op.Namespace, op.Partition = s.prefix+encode(key), s.opts.Namespace, s.opts.Partition
}

// txn has Consul do all of ops or nothing. sent is whether the request got a connection.
func (s *Store) txn(ctx context.Context, ops []api.KVTxnOp) (results api.TxnResults, sent bool, err error) {
	all := make(api.TxnOps, len(ops))
	for i := range ops {
		all[i] = &api.TxnOp{KV: &ops[i]}
	}
	var got atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }})
	var answer api.TxnResponse
	// Not client.Txn, whose errors don't tell one status from another.
	_, err = s.client.Raw().Write("/v1/txn", all, &answer, (&api.WriteOptions{}).WithContext(traced))
	return answer.Results, got.Load(), err
}

// written returns the index that a transaction says its operation number i gave the record key,
// which Consul calls name.
func written(key, name string, results api.TxnResults, i int) (uint64, error) {
	if i >= len(results) || results[i].KV == nil || results[i].KV.Key != name || results[i].KV.ModifyIndex == 0 {
		return 0, driver.Unknown(key, errors.New("what answered is no Consul server: it did not say what it wrote"))
	}
	return results[i].KV.ModifyIndex, nil
}

// rolledBack returns why a transaction was not done.
func (s *Store) rolledBack(ctx context.Context, key, version string, status api.StatusError) error {
	var answer api.TxnResponse
	if err := json.Unmarshal([]byte(status.Body), &answer); err != nil || len(answer.Errors) == 0 {
		return fmt.Errorf("%s: consul refused it: %w", key, status)
	}
	why := answer.Errors[0].What
	if strings.Contains(why, "Permission denied") {
		return fmt.Errorf("%s: %w", key, s.failed(ctx, api.StatusError{Code: http.StatusForbidden, Body: why}))
	}
	err := s.inTheWay(ctx, key, version, errors.New(why))
	if version == "" && errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s: not done: %w", key, errVanished)
	}
	return err
}

// errVanished says that what was in the way of a creation was deleted before it could be read: it
// can be tried again.
var errVanished = errors.New("what was stored has been deleted since")

// inTheWay returns why a write at a version was refused: because of what is stored instead, as a
// rule.
func (s *Store) inTheWay(ctx context.Context, key, version string, why error) error {
	r, err := s.load(ctx, key)
	switch {
	case err != nil:
		return err
	case r.rec.Version == version && version != "":
		return fmt.Errorf("%s: consul refused it though its version is the stored one: %w", key, why)
	case r.rec.Version == "":
		return driver.NotFound(key)
	}
	return &store.ConflictError{Current: r.rec}
}
