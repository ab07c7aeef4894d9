package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/store"
)

// newVersion returns one that no record ever had.
func newVersion() string { return rand.Text() }

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := store.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	kept := store.Canonical(rec)
	kept.Version = newVersion()
	w := &write{
		script: putScript, key: rec.Key, args: []any{rec.Version, kept.Version, body, s.channel, rec.Key}, size: len(body),
	}
	if err := s.write(ctx, w); err != nil {
		return store.Record{}, err
	}
	return kept, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return s.write(ctx, &write{script: deleteScript, key: key, args: []any{version, s.channel, key}})
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	answer, _, err := s.run(ctx, getScript, key, false)
	switch {
	case wrongType(err):
		return store.Record{}, store.Corrupt(key, err)
	case err != nil:
		return store.Record{}, err
	case first(answer) == answerMissing:
		return store.Record{}, store.NotFound(key)
	}
	return s.record(key, answer)
}

func wrongType(err error) bool { return isRefusal(err, "WRONGTYPE") }

// record reads an answer that shows one.
func (s *Store) record(key string, answer []any) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, store.Corrupt(key, err)
	}
	var f [5]string
	for i := range f {
		var ok bool
		if i < len(answer) {
			f[i], ok = answer[i].(string)
		}
		if !ok && i != 3 { // without a time there is no Age, and that is all
			return store.Record{}, store.Corrupt(key, errors.New("its hash lacks version or record: it isn't a record of Leasehold's"))
		}
	}
	if f[0] != answerFound {
		return store.Record{}, fmt.Errorf("%s: the script answered %q", key, f[0])
	}
	rec, err := store.Unmarshal([]byte(f[2]))
	if err != nil {
		return store.Record{}, store.Corrupt(key, err)
	}
	rec.Key, rec.Version, rec.Age = key, f[1], s.age(f[3], f[4])
	return rec, nil
}

// age returns the lower bound on a record's age, from the server's clock in µs at the write and now.
func (s *Store) age(written, now string) time.Duration {
	w, err1 := strconv.ParseInt(written, 10, 64)
	n, err2 := strconv.ParseInt(now, 10, 64)
	const most = int64(1<<63-1) / int64(time.Microsecond)
	if s.opts.ClockStep == 0 || err1 != nil || err2 != nil || w < 0 || n < w {
		return 0
	}
	return max(time.Duration(min(n-w, most))*time.Microsecond-s.opts.ClockStep, 0)
}
