package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// Crashes finds what is wrong with stores that a crash breaks, and nothing with one that it doesn't.
func TestCrashesFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for want, breaks := range map[string]func(e *engine, direct store.Store) (crash func()){
		"": func(*engine, store.Store) func() { return func() {} },
		"was acknowledged": func(e *engine, direct store.Store) func() {
			return func() { // forgets a record, which is written all the time
				for {
					rec, err := direct.Get(ctx, "crash1")
					if err == nil {
						err = direct.Delete(ctx, rec.Key, rec.Version)
					}
					if conflict := new(store.ConflictError); !errors.As(err, &conflict) {
						return
					}
				}
			}
		},
		"reported as not done": func(e *engine, _ store.Store) func() {
			var once sync.Once
			var crashed atomic.Bool
			e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
				got, err := e.Store.Put(ctx, rec)
				if err == nil && crashed.Load() { // one that a stall took too long for was not done
					once.Do(func() { err = errors.New("not done") })
				}
				return got, err
			}
			return func() { crashed.Store(true) }
		},
	} {
		db := memory.NewDB(memory.Options{})
		e := &engine{Store: db.Open()}
		err := Crashes(ctx, e, db.Open(), breaks(e, db.Open()))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A write that nothing was heard of may land after a read that didn't show it, before the next one.
func TestCrashesKnowsThatWritesCanBeLate(t *testing.T) {
	t.Parallel()
	db := memory.NewDB(memory.Options{})
	e := &engine{Store: db.Open()}
	var mu sync.Mutex
	under := map[string]store.Record{} // way, by key
	writes := 0
	e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
		mu.Lock()
		late, ok := under[rec.Key]
		delete(under, rec.Key)
		if writes++; !ok && writes%100 == 0 {
			under[rec.Key] = rec
			mu.Unlock()
			return store.Record{}, driver.Unknown(rec.Key, errors.New("no answer"))
		}
		mu.Unlock()
		if ok {
			if _, err := e.Store.Put(context.WithoutCancel(ctx), late); err != nil { // it was sent long ago
				t.Error(err)
			}
		}
		return e.Store.Put(ctx, rec)
	}
	if err := Crashes(t.Context(), e, db.Open(), func() {}); err != nil {
		t.Error(err)
	}
	if writes < 100 {
		t.Errorf("%d writes, none of them late", writes)
	}
}
