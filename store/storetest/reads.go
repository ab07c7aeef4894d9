package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// readsAreLinearizable: what was acknowledged on one handle is what the next Get on another one
// sees.
func readsAreLinearizable(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 3)
	if err != nil {
		return err
	}
	rec := held("k", 1)
	for i := range e.times(200, 20) {
		writer, reader := handles[i%3], handles[(i+1)%3]
		rec.Token = fence.Token(i + 1)
		if rec, err = mustPut(ctx, writer, rec); err != nil {
			return err
		}
		if err := mustGet(ctx, reader, rec); err != nil {
			return fmt.Errorf("on another handle than the one written on: %w", err)
		}
		if i%10 != 9 {
			continue
		}
		if err := mustDelete(ctx, writer, "k", rec.Version); err != nil {
			return err
		}
		if err := mustMiss(ctx, reader, "k"); err != nil {
			return fmt.Errorf("on another handle than the one deleted on: %w", err)
		}
		rec.Version = ""
	}
	return nil
}

// readsUnderWrites: that holds while writes continue as well: a Get sees all that was acknowledged
// before it was called, and nothing older than what a Get before it saw.
func readsUnderWrites(ctx context.Context, e *env) error {
	const readers = 4
	last := uint64(e.times(500, 50))
	handles, err := e.openAll(ctx, 3)
	if err != nil {
		return err
	}
	rec, err := mustPut(ctx, handles[0], held("k", 1))
	if err != nil {
		return err
	}
	var acknowledged atomic.Uint64
	return together(ctx, readers+1, func(ctx context.Context, i int) error {
		if i == readers {
			for rec.Token < fence.Token(last) {
				rec.Token++
				written, err := handles[0].Put(ctx, rec)
				if err != nil {
					return err
				}
				rec = written
				acknowledged.Store(uint64(rec.Token))
			}
			return nil
		}
		var seen uint64
		for seen < last {
			floor := max(acknowledged.Load(), seen)
			got, err := handles[i%3].Get(ctx, "k")
			if err != nil {
				return err
			}
			if seen = uint64(got.Token); seen < floor {
				return fmt.Errorf("get returned write %d after write %d had been acknowledged or seen", seen, floor)
			}
		}
		return nil
	})
}

// ledger keeps what a store acknowledged, for everythingAtOnce.
type ledger struct {
	mu       sync.Mutex
	replaced map[[2]string]bool // by key and version: a write replaced or deleted it
	made     map[[2]string]bool // by key and version: a write made it

	companions bool // the handles are of [companions]
}

// note records an acknowledged write and returns an error when it can't have been done after those
// of before.
func (l *ledger) note(key, before, after string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := [2]string{key, before}; before != "" {
		if l.replaced[old] {
			return fmt.Errorf("version %q of %q was replaced twice: an update was lost", before, key)
		}
		l.replaced[old] = true
	}
	if made := [2]string{key, after}; after != "" {
		if l.made[made] {
			return fmt.Errorf("version %q was given to two writes of %q", after, key)
		}
		l.made[made] = true
	}
	return nil
}

// everythingAtOnce: all methods at once, on several handles. Each version is made once and replaced
// at most once, and what is left at the end is what was acknowledged last.
func everythingAtOnce(ctx context.Context, e *env) error {
	const workers, keys = 8, 4
	handles, err := e.openAll(ctx, 3)
	if err != nil {
		return err
	}
	l := &ledger{replaced: map[[2]string]bool{}, made: map[[2]string]bool{}}
	_, l.companions = handles[0].(companions)
	err = together(ctx, workers, func(ctx context.Context, i int) error {
		s := handles[i%len(handles)]
		for range e.times(150, 10) {
			if err := l.step(ctx, s, fmt.Sprintf("k/%d", rand.N(keys))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	left := map[[2]string]bool{}
	for rec, err := range handles[0].List(ctx, "") {
		if err != nil {
			return err
		}
		left[[2]string{rec.Key, rec.Version}] = true
	}
	for v := range l.made {
		if stored := left[v]; stored == l.replaced[v] {
			return fmt.Errorf("version %q of %q: replaced or deleted: %v; stored at the end: %v", v[1], v[0], l.replaced[v], stored)
		}
	}
	return nil
}

// step does something to key, or with it.
func (l *ledger) step(ctx context.Context, s store.Store, key string) error {
	rec, err := store.Load(ctx, s, key)
	if err != nil {
		return err
	}
	switch n := rand.N(10); {
	case n < 6:
		next := held(key, rec.Token+1)
		next.Version = rec.Version
		written, err := s.Put(ctx, next)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || l.overtaken(err, rec) {
			return nil
		}
		if err != nil {
			return err
		}
		return l.note(key, rec.Version, written.Version)
	case n == 6 && rec.Version != "":
		err := s.Delete(ctx, key, rec.Version)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return l.note(key, rec.Version, "")
	case n == 7:
		_, err = keysOf(ctx, s, "k/")
	case n == 8:
		_, err = store.Wait(ctx, s, key, "some other version")
	default:
		if _, err = increment(ctx, s, "counter"); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		_, err = s.Put(ctx, held("counter", 1))
		if errors.Is(err, store.ErrConflict) || l.overtaken(err, store.Record{}) {
			return nil
		}
	}
	return err
}

// companions is what handles are whose engine claims a record that nobody holds by two writes, as
// those on other programs' tables do. Of a claim that others read and wrote over between the two,
// the engine may say that its outcome is unknown.
type companions interface{ ClaimsInTwoWrites() }

// overtaken says that the engine may not know of a write whether it counted: see [companions].
// Before it, the record was before.
func (l *ledger) overtaken(err error, before store.Record) bool {
	return l.companions && before.Owner == "" && errors.Is(err, store.ErrUnknownOutcome)
}
