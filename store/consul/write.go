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
)

// Put implements [store.Store]. It takes one round trip, and one more to read the record that is in its way.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := store.Marshal(rec)
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
	op := api.KVTxnOp{Verb: api.KVCAS, Value: body, Index: index, Flags: index}
	pair, err := s.txn(ctx, rec.Key, rec.Version, op)
	for errors.Is(err, errVanished) && ctx.Err() == nil {
		pair, err = s.txn(ctx, rec.Key, rec.Version, op)
	}
	if err != nil {
		return store.Record{}, err
	}
	stored := store.Canonical(rec)
	stored.Version = formatVersion(pair.ModifyIndex)
	return stored, nil
}

// Delete implements [store.Store]. It takes one round trip, and one more to read the record that is in its way.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := store.CheckKey(key); err != nil {
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
	_, err := s.txn(ctx, key, version, api.KVTxnOp{Verb: api.KVCheckIndex, Index: index}, api.KVTxnOp{Verb: api.KVDeleteCAS, Index: index})
	return err
}

// txn has Consul do all of ops, which are for a write to key at that version, or nothing. It returns what the first one left.
func (s *Store) txn(ctx context.Context, key, version string, ops ...api.KVTxnOp) (*api.KVPair, error) {
	all := make(api.TxnOps, len(ops))
	for i := range ops {
		ops[i].Key, ops[i].Namespace, ops[i].Partition = s.prefix+encode(key), s.opts.Namespace, s.opts.Partition
		all[i] = &api.TxnOp{KV: &ops[i]}
	}
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	var answer api.TxnResponse
	// Not client.Txn, whose errors don't tell one status from another.
	_, err := s.client.Raw().Write("/v1/txn", all, &answer, (&api.WriteOptions{}).WithContext(traced))
	var status api.StatusError
	if errors.As(err, &status) && status.Code == http.StatusConflict {
		return nil, s.rolledBack(ctx, key, version, status)
	}
	if err != nil {
		return nil, s.outcome(ctx, key, sent.Load(), err)
	}
	if len(answer.Results) == 0 || answer.Results[0].KV == nil || answer.Results[0].KV.ModifyIndex == 0 {
		return nil, store.Unknown(key, errors.New("what answered is no Consul server: it did not say what it wrote"))
	}
	return answer.Results[0].KV, nil
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

// errVanished says that what was in the way of a creation was deleted before it could be read: it can be tried again.
var errVanished = errors.New("what was stored has been deleted since")

// inTheWay returns why a write at a version was refused: because of what is stored instead, as a rule.
func (s *Store) inTheWay(ctx context.Context, key, version string, why error) error {
	r, err := s.load(ctx, key)
	switch {
	case err != nil:
		return err
	case r.rec.Version == version && version != "":
		return fmt.Errorf("%s: consul refused it though its version is the stored one: %w", key, why)
	case r.rec.Version == "":
		return store.NotFound(key)
	}
	return &store.ConflictError{Current: r.rec}
}
