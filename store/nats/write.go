package nats

import (
	"context"
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store]. It is one round trip; a conflict takes two, and a key that was
// deleted, three.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	value, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	var sequence uint64
	err = s.write(ctx, rec.Key, rec.Version, func(ctx context.Context, last uint64) (err error) {
		sequence, err = s.kv.Update(ctx, encode(rec.Key), value, last)
		return err
	})
	if err != nil {
		return store.Record{}, err
	}
	stored := driver.Canonical(rec)
	stored.Version = versionOf(sequence)
	return stored, nil
}

// Delete implements [store.Store]. It is one round trip; a conflict takes two. What remains is a
// message without data: its sequence keeps versions from coming again.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	if version == "" {
		version = never
	}
	return s.write(ctx, key, version, func(ctx context.Context, last uint64) error {
		return s.kv.Delete(ctx, encode(key), jetstream.LastRevision(last))
	})
}

// never is a version that no record has.
const never = "-"

// write calls send with the sequence that the key's last message must have, if version is the
// stored one. Otherwise it returns what is there instead. A refusal is certain, so it may send
// again where the refusal was about a deletion that the caller needn't know of, or about a write of
// somebody else that the leader had begun and then dropped.
func (s *Store) write(ctx context.Context, key, version string, send func(ctx context.Context, last uint64) error) error {
	last, possible := sequenceOf(version)
	for tries := 0; ; tries++ {
		if err := s.ready(ctx); err != nil {
			return err
		}
		if possible {
			if err := s.connected(ctx); err != nil {
				return fmt.Errorf("%s: not written: %w", key, err)
			}
			err := s.bounded(ctx, func(ctx context.Context) error { return send(ctx, last) })
			if err == nil {
				s.lookAgain()
			}
			if !mismatch(err) {
				return outcome(key, err)
			}
		}
		current, sequence, err := s.loadFrom(ctx, key, last)
		switch {
		case err != nil:
			return err
		case version == "" && current.Version == "", version == current.Version:
			last = sequence
		case current.Version == "":
			return driver.NotFound(key)
		default:
			return &store.ConflictError{Current: current}
		}
		if tries > 0 {
			if err := watcher.Pause(ctx, s.feeds.Life().Done(), watcher.RetryMin); err != nil {
				return err
			}
		}
	}
}

// connected waits until there is a connection, for as long as a request may take. What is sent
// without one is kept by the client and arrives when there is one, long after the caller has given
// up on it.
func (s *Store) connected(ctx context.Context) error {
	if s.conn.IsConnected() {
		return nil
	}
	changed := s.conn.StatusChanged(natsgo.CONNECTED, natsgo.CLOSED)
	defer s.conn.RemoveStatusListener(changed)
	timer := clock.NewTimer(clock.System(), answerWithin)
	defer timer.Stop()
	for !s.conn.IsConnected() {
		if s.conn.IsClosed() {
			return Explain(natsgo.ErrConnectionClosed)
		}
		select {
		case <-changed:
		case <-timer.C:
			return Explain(fmt.Errorf("the connection is %s", s.conn.Status()))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.feeds.Life().Done():
			return store.ErrClosed
		}
	}
	return nil
}

// mismatch reports whether err says that the key's last message had another sequence.
func mismatch(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// The codes of JetStream's errors that nats.go has no names for, and that are answered before
// anything is stored.
const (
	codeAccountResources jetstream.ErrorCode = 10002
	codeResources        jetstream.ErrorCode = 10023
	codeSealed           jetstream.ErrorCode = 10109
)

// outcome returns the error of a write that a server didn't acknowledge.
func outcome(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case refused(err):
		return fmt.Errorf("%s: not written: %w", key, Explain(err))
	}
	return driver.Unknown(key, Explain(err))
}

// refused reports whether err says that the write was not stored and will not be. Other errors of
// JetStream are not among them: a store that fails may have written.
func refused(err error) bool {
	for _, certain := range []error{natsgo.ErrNoResponders, jetstream.ErrNoStreamResponse, natsgo.ErrMaxPayload, natsgo.ErrReconnectBufExceeded} {
		if errors.Is(err, certain) {
			return true
		}
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum, jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeJetStreamNotEnabled,
		jetstream.JSErrCodeJetStreamNotEnabledForAccount, codeAccountResources, codeResources, codeSealed:
		return true
	}
	return false
}
