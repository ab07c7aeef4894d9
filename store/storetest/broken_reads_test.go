package storetest

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// brokenReads see too little, too much or too late.
var brokenReads = []breakage{
	each("reads from a cache of the handle", func(e *engine) {
		var mu sync.Mutex
		cache := map[string]store.Record{}
		e.get = func(ctx context.Context, key string) (store.Record, error) {
			rec, err := e.Store.Get(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			old, ok := cache[key]
			cache[key] = rec
			if ok && err == nil {
				return old, nil
			}
			return rec, err
		}
	}, "ReadsAreLinearizable"),
	shared("goes back in time now and then", func(*memory.DB) func(*engine) {
		var reads atomic.Int64
		var first atomic.Pointer[store.Record]
		return func(e *engine) {
			e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
				got, err := e.Store.Put(ctx, rec)
				if err == nil {
					first.CompareAndSwap(nil, &got)
				}
				return got, err
			}
			e.get = func(ctx context.Context, key string) (store.Record, error) {
				if reads.Add(1)%2 == 0 {
					return *first.Load(), nil
				}
				return e.Store.Get(ctx, key)
			}
		}
	}, "ReadsUnderWrites"),
	listing("yields a thousand at most", func(rows []store.Record) []store.Record { return rows[:min(len(rows), 1000)] }, "ListThousands"),
	listing("yields one twice", func(rows []store.Record) []store.Record { return append(rows, rows[len(rows)/2]) }, "ListThousands"),
	listing("yields records without their data", func(rows []store.Record) []store.Record {
		for i := range rows {
			rows[i].Nonce = ""
		}
		return rows
	}, "ListThousands"),
	each("numbers its pages", func(e *engine) {
		e.list = func(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
			return func(yield func(store.Record, error) bool) {
				const page = 7
				for at := 0; ; at += page {
					n := 0
					for rec, err := range e.Store.List(ctx, prefix) {
						if n++; n <= at {
							continue
						}
						if n > at+page {
							break
						}
						if !yield(rec, err) || err != nil {
							return
						}
					}
					if n <= at+page {
						return
					}
					runtime.Gosched() // others write
				}
			}
		}
	}, "ListUnderChange"),
	shared("holds a lock while it lists", func(*memory.DB) func(*engine) { return locking(true) }, "ListBodyUsesStore"),
	shared("keeps the lock when a list is left", func(*memory.DB) func(*engine) { return locking(false) }, "ListBreak"),
	each("ends a list quietly when it is cancelled", func(e *engine) {
		e.list = func(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
			return func(yield func(store.Record, error) bool) {
				for rec, err := range e.Store.List(ctx, prefix) {
					if ctx.Err() != nil || !yield(rec, err) {
						return
					}
				}
			}
		}
	}, "ListCancel"),

	spoilt("is a millisecond fast", func(r *store.Record) { r.Age += time.Millisecond }, "AgeIsLowerBound"),
	spoilt("takes every writer for gone", func(r *store.Record) { r.Age = store.AgeGone }, "AgeIsLowerBound", "Reopen"),
	spoilt("vouches for nothing", func(r *store.Record) { r.Age = 0 }, "AgeGrows"),
	each("forgets ages now and then", func(e *engine) {
		var n atomic.Int64
		e.read = func(r *store.Record) {
			if n.Add(1)%3 == 0 {
				r.Age = 0
			}
		}
	}, "AgeIsLowerBound"),
	shared("counts ages from the creation", func(*memory.DB) func(*engine) {
		var mu sync.Mutex
		before := map[string]time.Duration{} // of earlier versions, and far more: the check may be held up after its write
		return func(e *engine) {
			e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
				if old, err := e.Store.Get(ctx, rec.Key); err == nil {
					mu.Lock()
					before[rec.Key] += 10_000 * old.Age
					mu.Unlock()
				}
				return e.Store.Put(ctx, rec)
			}
			e.read = func(r *store.Record) {
				mu.Lock()
				defer mu.Unlock()
				r.Age += before[r.Key]
			}
		}
	}, "AgeStartsAnew"),
}

// listing returns an engine that yields what change makes of the right records.
func listing(name string, change func([]store.Record) []store.Record, caught ...string) breakage {
	return each(name, func(e *engine) {
		e.list = func(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
			return func(yield func(store.Record, error) bool) {
				var rows []store.Record
				for rec, err := range e.Store.List(ctx, prefix) {
					if err != nil {
						yield(rec, err)
						return
					}
					rows = append(rows, rec)
				}
				if len(rows) > 0 {
					rows = change(rows)
				}
				for _, rec := range rows {
					if !yield(rec, nil) {
						return
					}
				}
			}
		}
	}, caught...)
}

// locking makes an engine whose writes and lists take one lock. A list that is left early frees it, or doesn't.
func locking(freed bool) func(*engine) {
	lock := make(chan struct{}, 1)
	acquire := func(ctx context.Context) error {
		select {
		case lock <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			if err := acquire(ctx); err != nil {
				return store.Record{}, err
			}
			defer func() { <-lock }()
			return e.Store.Put(ctx, rec)
		}
		e.list = func(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
			return func(yield func(store.Record, error) bool) {
				if err := acquire(ctx); err != nil {
					yield(store.Record{}, err)
					return
				}
				for rec, err := range e.Store.List(ctx, prefix) {
					if !yield(rec, err) {
						if freed {
							<-lock
						}
						return
					}
				}
				<-lock
			}
		}
	}
}
