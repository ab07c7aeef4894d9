package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// held returns a small record that has a holder.
func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "host/1/abc", Token: token, TTL: 15 * time.Second, Nonce: fmt.Sprintf("n%d", token)}
}

// full returns a record with every field set.
func full(key string) store.Record {
	at := time.Date(2026, 11, 21, 10, 13, 16, 123456789, time.UTC)
	return store.Record{
		Key: key, Owner: "host/42/f00d", Token: fence.MaxToken - 7, TTL: 15*time.Second + 1, Session: "session/f00d",
		Acquired: at, Intervention: store.InterventionBroken, Note: "by alice: \"maintenance\"", Kind: store.KindSemaphore,
		Info: map[string]string{"host": "host", "": "empty key", "op": "line 1\nline 2\t<&>'\"\\", "empty": "", "ключ": "значение 🔒"},
		Past: []store.Term{
			{Owner: "b", Token: 12, From: at.Add(-time.Hour), Until: at.Add(-time.Minute), Why: "released"},
			{Owner: "", Token: 0, Why: ""},
		},
		Data: []byte{0, 1, 2, 0xff, 0xfe, '"', '\\', '\n'}, Nonce: "n-1",
	}
}

// canonical returns rec as a store gives it back: what the codec of package store keeps of it.
func canonical(rec store.Record) (store.Record, error) {
	b, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	kept, err := driver.Unmarshal(b)
	kept.Key, kept.Version = rec.Key, rec.Version
	return kept, err
}

// same returns an error that names the fields in which got isn't what was written, want. It leaves
// Age alone.
func same(got, want store.Record) error {
	want, err := canonical(want)
	if err != nil {
		return err
	}
	got.Age = 0
	if reflect.DeepEqual(got, want) {
		return nil
	}
	var diffs []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			diffs = append(diffs, fmt.Sprintf("%s is %s, want %s", g.Type().Field(i).Name, brief(a), brief(b)))
		}
	}
	return fmt.Errorf("record %q: %s", want.Key, strings.Join(diffs, "; "))
}

func brief(v any) string {
	const most = 200
	s := fmt.Sprintf("%#v", v)
	if len(s) > most {
		return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return s
}

// mustPut writes rec and checks what Put returns.
func mustPut(ctx context.Context, s store.Store, rec store.Record) (store.Record, error) {
	got, err := s.Put(ctx, rec)
	if err != nil {
		return store.Record{}, fmt.Errorf("put %q at version %q: %w", rec.Key, rec.Version, err)
	}
	if got.Version == "" || got.Version == rec.Version {
		return store.Record{}, fmt.Errorf("put %q at version %q returned version %q, want a new one", rec.Key, rec.Version, got.Version)
	}
	want := rec
	want.Version = got.Version
	if err := same(got, want); err != nil {
		return store.Record{}, fmt.Errorf("returned by Put: %w", err)
	}
	return got, nil
}

// mustGet reads want.Key and checks that want is what is stored.
func mustGet(ctx context.Context, s store.Store, want store.Record) error {
	got, err := s.Get(ctx, want.Key)
	if err != nil {
		return fmt.Errorf("get %q: %w", want.Key, err)
	}
	if err := same(got, want); err != nil {
		return fmt.Errorf("returned by Get: %w", err)
	}
	return nil
}

// mustDelete deletes a record and checks that it is gone.
func mustDelete(ctx context.Context, s store.Store, key, version string) error {
	if err := s.Delete(ctx, key, version); err != nil {
		return fmt.Errorf("delete %q at version %q: %w", key, version, err)
	}
	return mustMiss(ctx, s, key)
}

// mustMiss checks that key is not stored.
func mustMiss(ctx context.Context, s store.Store, key string) error {
	got, err := s.Get(ctx, key)
	if err == nil {
		return fmt.Errorf("get %q returned version %q, want ErrNotFound", key, got.Version)
	}
	return notFound(fmt.Sprintf("Get %q", key), err)
}

// notFound checks that err says so.
func notFound(what string, err error) error {
	if !errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknownOutcome) {
		return fmt.Errorf("%s: %v, want ErrNotFound", what, err)
	}
	return nil
}

// put returns the Put of rec, which can be repeated.
func put(ctx context.Context, s store.Store, rec store.Record) func() error {
	return func() error {
		_, err := s.Put(ctx, rec)
		return err
	}
}

// del returns the Delete, which can be repeated.
func del(ctx context.Context, s store.Store, key, version string) func() error {
	return func() error { return s.Delete(ctx, key, version) }
}

// unknowns is how often in a row a write that can only be refused may have an unknown outcome: a
// server that is well may have a fault of its own now and then, but an engine that never knows is
// wrong.
const unknowns = 2

// refused returns the conflict by which write, which may be repeated, is refused.
func (e *env) refused(what string, write func() error) (*store.ConflictError, error) {
	err := write()
	for n := 0; n < unknowns && errors.Is(err, store.ErrUnknownOutcome); n++ {
		e.logf("%s, once more: %v", what, err)
		err = write()
	}
	var c *store.ConflictError
	if !errors.As(err, &c) || !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknownOutcome) {
		return nil, fmt.Errorf("%s: %v, want a *ConflictError", what, err)
	}
	return c, nil
}

// conflict checks that write is refused by a conflict that carries current, and that current is
// what is stored.
func (e *env) conflict(ctx context.Context, s store.Store, what string, write func() error, current store.Record) error {
	c, err := e.refused(what, write)
	if err != nil {
		return err
	}
	if err := same(c.Current, current); err != nil {
		return fmt.Errorf("%s: Current of the conflict: %w", what, err)
	}
	if err := mustGet(ctx, s, current); err != nil {
		return fmt.Errorf("%s: after the conflict: %w", what, err)
	}
	return nil
}

// keysOf lists prefix and returns how often each key was yielded.
func keysOf(ctx context.Context, s store.Store, prefix string) (map[string]int, error) {
	keys := map[string]int{}
	for rec, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", prefix, err)
		}
		keys[rec.Key]++
	}
	return keys, nil
}

// together runs f for 0 to n-1, each in a goroutine of its own, and returns the first error when
// all have ended. It ends the context of the others.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				once.Do(func() { first = err; cancel() })
			}
		})
	}
	wg.Wait()
	return first
}

// pause passes a moment, for those who look again and again. It returns the cause when ctx ends.
func pause(ctx context.Context) error {
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// increment raises the token of key by one and tries again as long as others are first. It returns
// what it wrote.
func increment(ctx context.Context, s store.Store, key string) (store.Record, error) {
	rec, err := s.Get(ctx, key)
	for err == nil {
		rec.Token++
		var written store.Record
		written, err = s.Put(ctx, rec)
		if err == nil {
			return written, nil
		}
		var c *store.ConflictError
		if errors.As(err, &c) {
			rec, err = c.Current, nil
		}
	}
	return store.Record{}, fmt.Errorf("increment %q: %w", key, err)
}
