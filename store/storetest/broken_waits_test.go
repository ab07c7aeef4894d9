package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// brokenWaits wake too late, too early or the wrong ones.
var brokenWaits = []breakage{
	{"does not push", []string{"Pushes"}, func() Instance {
		db := memory.NewDB(memory.Options{})
		return instanceOf(func() store.Store { return struct{ store.Store }{db.Open()} })
	}},
	each("looks first and listens then", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			rec, err := store.Load(ctx, e.Store, key)
			if err != nil || rec.Version != version {
				return rec, err
			}
			time.Sleep(time.Nanosecond) // others write
			if rec, err = store.Load(ctx, e.Store, key); err != nil {
				return rec, err
			}
			return e.Store.Wait(ctx, key, rec.Version)
		}
	}, "WaitPingPong", "WaitHammer"),
	each("waits for the next change", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			rec, err := store.Load(ctx, e.Store, key)
			if err != nil {
				return rec, err
			}
			return e.Store.Wait(ctx, key, rec.Version)
		}
	}, "WaitAtOnce"),
	each("calls a deleted record not found", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			rec, err := e.Store.Wait(ctx, key, version)
			if err == nil && rec.Version == "" {
				err = driver.NotFound(key)
			}
			return rec, err
		}
	}, "WaitAtOnce", "WaitForChange"),
	each("doesn't notice deletions", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			rec, err := e.Store.Wait(ctx, key, version)
			for err == nil && rec.Version == "" {
				rec, err = e.Store.Wait(ctx, key, "")
			}
			return rec, err
		}
	}, "WaitForChange"),
	shared("hears writes of the same handle only", func(*memory.DB) func(*engine) {
		return func(e *engine) {
			var writes atomic.Int64
			e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
				defer writes.Add(1)
				return e.Store.Put(ctx, rec)
			}
			e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
				for before := int64(-1); ; {
					if now := writes.Load(); now != before {
						before = now
						rec, err := store.Load(ctx, e.Store, key)
						if err != nil || rec.Version != version {
							return rec, err
						}
					}
					if err := pause(ctx); err != nil {
						return store.Record{}, err
					}
				}
			}
		}
	}, "WaitForChange", "WaitPingPong"),
	each("wakes for nothing", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Microsecond)
			defer cancel()
			rec, err := e.Store.Wait(ctx, key, version)
			if errors.Is(err, context.DeadlineExceeded) {
				return store.Load(context.WithoutCancel(ctx), e.Store, key)
			}
			return rec, err
		}
	}, "WaitCancel", "WaitOtherKeys"),
	shared("wakes one of many", func(*memory.DB) func(*engine) {
		turn := make(chan struct{}, 1)
		return func(e *engine) {
			e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
				select {
				case turn <- struct{}{}: // and never gives its turn to another
				case <-ctx.Done():
					return store.Record{}, context.Cause(ctx)
				}
				return e.Store.Wait(ctx, key, version)
			}
		}
	}, "WaitMany"),
	each("wakes for keys that begin alike", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			before, err := keysOf(ctx, e.Store, key)
			for err == nil {
				var rec store.Record
				if rec, err = store.Load(ctx, e.Store, key); err != nil || rec.Version != version {
					return rec, err
				}
				keys, listErr := keysOf(ctx, e.Store, key)
				if err = listErr; err == nil && len(keys) != len(before) {
					return rec, nil
				}
				if err == nil {
					err = ctx.Err()
				}
				time.Sleep(time.Microsecond)
			}
			return store.Record{}, err
		}
	}, "WaitOtherKeys"),
	each("can't be cancelled", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			return e.Store.Wait(context.WithoutCancel(ctx), key, version)
		}
	}, "WaitCancel"),
	each("forgets why it was cancelled", func(e *engine) {
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			rec, err := e.Store.Wait(ctx, key, version)
			if err != nil && ctx.Err() != nil {
				err = ctx.Err()
			}
			return rec, err
		}
	}, "WaitCancel"),
	each("goes on when it is closed", func(e *engine) {
		var waiting atomic.Int64
		e.wait = func(ctx context.Context, key, version string) (store.Record, error) {
			waiting.Add(1)
			defer waiting.Add(-1)
			return e.Store.Wait(ctx, key, version)
		}
		e.close = func() error {
			if waiting.Load() > 0 {
				return nil
			}
			return e.Store.Close()
		}
	}, "WaitClose"),
	shared("closes everybody's waits", func(db *memory.DB) func(*engine) {
		all := db.Open()
		return func(e *engine) {
			e.wait = all.Wait
			e.close = func() error { return errors.Join(all.Close(), e.Store.Close()) }
		}
	}, "WaitClose"),
}
