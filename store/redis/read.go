package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.load(ctx, getScript, key, false)
	if err == nil {
		rec, err = s.sure(ctx, rec)
	}
	return stored(rec, err)
}

// Confirm implements [store.Confirmer]: the read, by a script that writes and changes nothing, and
// with Replicas their acknowledgement of it on the same connection. It is one round trip, and an
// error when too few acknowledge within ReplicaWait.
func (s *Store) Confirm(ctx context.Context, key string) (store.Record, error) {
	return stored(s.confirm(ctx, key))
}

// stored has a record that isn't there be an error.
func stored(rec store.Record, err error) (store.Record, error) {
	if err == nil && rec.Version == "" {
		return store.Record{}, driver.NotFound(rec.Key)
	}
	return rec, err
}

// confirm is Confirm, where a key that isn't stored is no error.
func (s *Store) confirm(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.load(ctx, confirmScript, key, true)
	if err != nil {
		return store.Record{}, fmt.Errorf("%s: can't be confirmed: %w", key, err)
	}
	s.doubts.Confirmed(key, rec.Nonce)
	return rec, nil
}

// sure returns what was read, or what is read behind an acknowledged write where that shows a write
// in doubt: the server shows what no replica has.
func (s *Store) sure(ctx context.Context, rec store.Record) (store.Record, error) {
	if s.opts.Replicas == 0 || !s.doubts.Shows(rec.Key, rec.Nonce) {
		return rec, nil
	}
	return s.confirm(ctx, rec.Key)
}

// load is [store.Load] by that script.
func (s *Store) load(ctx context.Context, sc script, key string, replicas bool) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	answer, _, err := s.run(ctx, sc, key, replicas)
	switch {
	case wrongType(err):
		return store.Record{}, driver.Corrupt(key, err)
	case err != nil:
		return store.Record{}, err
	case first(answer) == answerMissing:
		return store.Record{Key: key}, nil
	}
	return s.record(key, answer)
}

func wrongType(err error) bool { return isRefusal(err, "WRONGTYPE") }

// Where an answer that shows a record has what.
const (
	atNow = iota + 1
	atVersion
	atRecord
	atWritten
	atPast
	shown = atPast + store.MaxPast
)

// record reads an answer that shows one.
func (s *Store) record(key string, answer []any) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, driver.Corrupt(key, err)
	}
	if word := first(answer); word != answerFound || len(answer) != shown {
		return store.Record{}, fmt.Errorf("%s: the script answered %q, and %d parts", key, word, len(answer))
	}
	version, ok1 := answer[atVersion].(string)
	body, ok2 := answer[atRecord].(string)
	if !ok1 || !ok2 {
		return store.Record{}, driver.Corrupt(key, errors.New("its hash lacks version or record: it isn't a record of Leasehold's"))
	}
	past, err := terms(version, answer[atPast:])
	if err != nil {
		return store.Record{}, driver.Corrupt(key, err)
	}
	rec, err := unmarshalApart([]byte(body), past)
	if err != nil {
		return store.Record{}, driver.Corrupt(key, blame(version, past, err))
	}
	written, _ := answer[atWritten].(string) // without it there is no Age, and that is all
	now, _ := answer[atNow].(string)
	rec.Key, rec.Version, rec.Age = key, version, s.age(written, now)
	return rec, nil
}

// age returns the lower bound on a record's age, from the server's clock in µs at the write and
// now.
func (s *Store) age(written, now string) time.Duration {
	w, err1 := strconv.ParseInt(written, 10, 64)
	n, err2 := strconv.ParseInt(now, 10, 64)
	const most = int64(1<<63-1) / int64(time.Microsecond)
	if s.opts.ClockStep == 0 || err1 != nil || err2 != nil || w < 0 || n < w {
		return 0
	}
	return max(time.Duration(min(n-w, most))*time.Microsecond-s.opts.ClockStep, 0)
}
