package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// waited is what a Wait returned.
type waited struct {
	rec store.Record
	err error
}

// startWait begins a Wait in a goroutine that the end of the check waits for.
func (e *env) startWait(ctx context.Context, s store.Store, key, version string) <-chan waited {
	result := make(chan waited, 1)
	e.waits.Go(func() {
		rec, err := waitFrom(ctx, s, key, version)
		result <- waited{rec, err}
	})
	return result
}

// settle gives the Waits that were begun on a handle the time to begin in earnest. What is checked
// holds either way, but a Wait that only begins after the write that it waits for shows little.
func settle(ctx context.Context, handles ...store.Store) error {
	for _, s := range handles {
		if _, err := store.Load(ctx, s, "settle"); err != nil {
			return err
		}
	}
	return pause(ctx)
}

// waitFrom is store.Wait, and checks that it is not woken for nothing.
func waitFrom(ctx context.Context, s store.Store, key, version string) (store.Record, error) {
	rec, err := store.Wait(ctx, s, key, version)
	if err == nil && rec.Version == version {
		err = fmt.Errorf("wait for %q returned the version that it was given, %q", key, version)
	}
	if err == nil && rec.Key != key {
		err = fmt.Errorf("wait for %q returned the record of %q", key, rec.Key)
	}
	return rec, err
}

// soon returns what comes out of the channel, or an error when nothing comes for long.
func soon[T any](ctx context.Context, what string, ch <-chan T) (v T, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-ch:
		return v, nil
	case <-timer.C:
		return v, fmt.Errorf("%s: nothing came for %v", what, patience)
	case <-ctx.Done():
		return v, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
}

// pushes: the engine implements store.Waiter if the instance says so.
func pushes(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	if _, ok := s.(store.Waiter); ok != e.Pushes {
		return fmt.Errorf("implements store.Waiter: %v; Instance.Pushes: %v", ok, e.Pushes)
	}
	return nil
}

// waitAtOnce: Wait returns at once when the stored version is another one already.
func waitAtOnce(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	first, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	next := full("k")
	next.Version = first.Version
	current, err := mustPut(ctx, s, next)
	if err != nil {
		return err
	}
	gone, err := mustPut(ctx, s, held("gone", 1))
	if err != nil {
		return err
	}
	if err := mustDelete(ctx, s, "gone", gone.Version); err != nil {
		return err
	}
	for _, w := range []struct {
		what, version string
		want          store.Record
	}{
		{"a record, from nothing", "", current},
		{"a record, from its version of before", first.Version, current},
		{"a record, from a version it never had", "x", current},
		{"a deleted record, from its last version", gone.Version, store.Record{Key: "gone"}},
		{"a key never stored, from a version", "x", store.Record{Key: "never"}},
	} {
		got, err := soon(ctx, "Wait for "+w.what, e.startWait(ctx, s, w.want.Key, w.version))
		if err := errors.Join(err, got.err); err != nil {
			return err
		}
		if w.want.Version == "" && !reflect.DeepEqual(got.rec, w.want) {
			return fmt.Errorf("wait for %s returned %+v, want a record with nothing but the key", w.what, got.rec)
		}
		if err := same(got.rec, w.want); err != nil {
			return fmt.Errorf("returned by Wait for %s: %w", w.what, err)
		}
	}
	return nil
}

// waitForChange: creation, update, deletion and re-creation end a Wait, on the handle of the write
// and on others.
func waitForChange(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	for round := range e.times(20, 4) {
		s, writer := handles[0], handles[round%2]
		rec := store.Record{Key: fmt.Sprintf("k/%d", round)}
		for _, change := range []string{"create", "update", "delete", "create again", "delete"} {
			waiting := e.startWait(ctx, s, rec.Key, rec.Version)
			if round%4 < 2 {
				if err := settle(ctx, s); err != nil {
					return err
				}
			}
			next := full(rec.Key)
			next.Version = rec.Version
			if change == "delete" {
				next = store.Record{Key: rec.Key}
				err = mustDelete(ctx, writer, rec.Key, rec.Version)
			} else {
				next, err = mustPut(ctx, writer, next)
			}
			if err != nil {
				return err
			}
			got, err := soon(ctx, "Wait for "+change, waiting)
			if err := errors.Join(err, got.err); err != nil {
				return err
			}
			if err := same(got.rec, next); err != nil {
				return fmt.Errorf("returned by Wait for %s: %w", change, err)
			}
			rec = next
		}
	}
	return nil
}

// waitPingPong: two who wait for each other's writes never both wait.
func waitPingPong(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	last := fence.Token(10)
	if e.Pushes {
		last = fence.Token(e.times(500, 50))
	}
	if _, err := mustPut(ctx, handles[0], held("k", 1)); err != nil {
		return err
	}
	return together(ctx, 2, func(ctx context.Context, i int) error {
		rec, err := handles[i].Get(ctx, "k")
		for err == nil && rec.Token < last {
			if int(rec.Token%2) == i {
				rec, err = increment(ctx, handles[i], "k")
			} else {
				rec, err = waitFrom(ctx, handles[i], "k", rec.Version)
			}
		}
		return err
	})
}

// waitHammer: those who chase a writer that doesn't stop see its last write, each time that it
// rests.
func waitHammer(ctx context.Context, e *env) error {
	const chasers = 4
	handles, err := e.openAll(ctx, 3)
	if err != nil {
		return err
	}
	rec, err := mustPut(ctx, handles[0], held("k", 1))
	if err != nil {
		return err
	}
	rounds := 3
	if e.Pushes {
		rounds = e.times(50, 5)
	}
	for range rounds {
		start := rec
		burst := 1 + rand.N(20)
		last := start.Token + fence.Token(burst)
		err := together(ctx, chasers+1, func(ctx context.Context, i int) error {
			if i == chasers {
				err := settle(ctx, handles...)
				for range burst {
					if err != nil {
						return err
					}
					rec, err = increment(ctx, handles[0], "k")
					runtime.Gosched() // to those who were woken, who now look again
				}
				return err
			}
			for seen := start; seen.Token < last; {
				next, err := waitFrom(ctx, handles[i%3], "k", seen.Version)
				if err != nil {
					return fmt.Errorf("after write %d of %d: %w", seen.Token, last, err)
				}
				if next.Token < seen.Token {
					return fmt.Errorf("wait returned write %d after write %d", next.Token, seen.Token)
				}
				seen = next
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
