package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// brokenLives forget, or go on, when they are closed.
var brokenLives = []breakage{
	{"forgets everything with the last handle", []string{"ReopenAll"}, func() Instance {
		var db *memory.DB
		var open int
		return instanceOf(func() store.Store {
			if open == 0 {
				db = memory.NewDB(memory.Options{})
			}
			open++
			e := &engine{Store: db.Open()}
			e.close = func() error { open--; return e.Store.Close() }
			return e
		})
	}},
	{"gives every handle data of its own", []string{"Reopen", "ReadsAreLinearizable"}, func() Instance {
		return instanceOf(func() store.Store { return memory.New(memory.Options{}) })
	}},
	each("reads after it was closed", func(e *engine) {
		var last atomic.Pointer[store.Record]
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			got, err := e.Store.Put(ctx, rec)
			if err == nil {
				last.Store(&got)
			}
			return got, err
		}
		e.get = func(ctx context.Context, key string) (store.Record, error) {
			rec, err := e.Store.Get(ctx, key)
			if errors.Is(err, store.ErrClosed) && last.Load() != nil {
				return *last.Load(), nil
			}
			return rec, err
		}
	}, "Closed"),
	each("can't be closed twice", func(e *engine) {
		var closed atomic.Bool
		e.close = func() error {
			if closed.Swap(true) {
				return store.ErrClosed
			}
			return e.Store.Close()
		}
	}, "Closed"),
	each("denies what it did when it is closed meanwhile", func(e *engine) {
		var closed atomic.Bool
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			got, err := e.Store.Put(ctx, rec)
			time.Sleep(time.Nanosecond)
			if closed.Load() {
				return store.Record{}, store.ErrClosed
			}
			return got, err
		}
		e.close = func() error { closed.Store(true); return e.Store.Close() }
	}, "CloseUnderUse"),
}
