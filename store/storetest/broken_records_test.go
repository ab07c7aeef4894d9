package storetest

import (
	"context"
	"iter"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// brokenRecords lose, change or share what is in a record, or mistake one key for another.
var brokenRecords = []breakage{
	stored("loses the ended terms", func(r *store.Record) { r.Past = nil }, "RoundTrip"),
	stored("loses the nonce", func(r *store.Record) { r.Nonce = "" }, "RoundTrip"),
	stored("keeps dates in microseconds", func(r *store.Record) { r.Acquired = r.Acquired.Truncate(time.Microsecond) }, "RoundTrip"),
	spoilt("gives dates in local time", func(r *store.Record) { r.Acquired = r.Acquired.In(time.FixedZone("", 3600)) }, "RoundTrip"),
	stored("keeps five pieces of information", func(r *store.Record) {
		for k := range r.Info {
			if len(r.Info) > 5 {
				delete(r.Info, k)
			}
		}
	}, "RoundTripRandom"),
	spoilt("gives an empty map for none", func(r *store.Record) {
		if r.Info == nil {
			r.Info = map[string]string{}
		}
	}, "EmptyIsNil"),
	stored("keeps TTLs in seconds", func(r *store.Record) { r.TTL = r.TTL.Truncate(time.Second) }, "TTLIsExact"),
	stored("keeps TTLs in microseconds", func(r *store.Record) { r.TTL = r.TTL.Truncate(time.Microsecond) }, "TTLIsExact"),
	stored("keeps TTLs as floating-point seconds", func(r *store.Record) {
		r.TTL = time.Duration(float32(r.TTL.Seconds()) * float32(time.Second))
	}, "TTLIsExact"),
	stored("takes TTLs beyond the limit for the limit", func(r *store.Record) { r.TTL = min(r.TTL, store.MaxTTL) }, "RecordLimits"),
	stored("forgets old terms beyond the limit", func(r *store.Record) { r.Past = r.Past[:min(len(r.Past), store.MaxPast)] }, "RecordLimits"),
	each("takes 64 KiB less one", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			if b, err := driver.Marshal(rec); err == nil && len(b) >= store.MaxRecord {
				return store.Record{}, &store.InvalidError{Field: "record"}
			}
			return e.Store.Put(ctx, rec)
		}
	}, "LargestRecords"),
	shared("returns the memory that it keeps", aliasing, "NoAliasing"),

	each("does not check the key of a Get", func(e *engine) {
		e.get = func(ctx context.Context, key string) (store.Record, error) {
			if err := driver.CheckKey(key); err != nil {
				return store.Record{}, driver.NotFound(key)
			}
			return e.Store.Get(ctx, key)
		}
	}, "KeyLimits"),
	sameKey("cuts keys short", func(key string) string { return key[:min(len(key), store.MaxKey-1)] }, "OddKeys"),
	sameKey("ignores case", strings.ToLower, "OddKeys"),
	sameKey("ignores spaces at the end", func(key string) string { return strings.TrimRight(key, " ") + "|" }, "OddKeys"),
	sameKey("takes keys for paths", func(key string) string { return path.Clean(key) }, "OddKeys"),
	sameKey("takes keys for URLs", func(key string) string { return strings.ReplaceAll(key, "%2F", "/") }, "OddKeys"),
	sameKey("composes characters", func(key string) string { return strings.ReplaceAll(key, "e\u0301", "\u00e9") }, "OddKeys"),
	prefixes("takes _ for any character", func(key, prefix string) bool {
		if len(key) < len(prefix) {
			return false
		}
		for i := range len(prefix) {
			if prefix[i] != '_' && prefix[i] != key[i] {
				return false
			}
		}
		return true
	}),
	prefixes("takes * for the end of the pattern", func(key, prefix string) bool {
		before, _, _ := strings.Cut(prefix, "*")
		return strings.HasPrefix(key, before)
	}),
	prefixes("takes prefixes for folders", func(key, prefix string) bool {
		return prefix == "" || key == prefix || strings.HasPrefix(key, strings.TrimSuffix(prefix, "/")+"/")
	}),
	prefixes("ignores the case of prefixes", func(key, prefix string) bool {
		return len(key) >= len(prefix) && strings.EqualFold(key[:len(prefix)], prefix)
	}),
	prefixes("leaves out the key that is the prefix", func(key, prefix string) bool {
		return strings.HasPrefix(key, prefix) && key != prefix
	}),
}

// aliasing makes an engine whose Get returns the same maps and slices each time.
func aliasing(*memory.DB) func(*engine) {
	var mu sync.Mutex
	kept := map[string]store.Record{}
	return func(e *engine) {
		e.get = func(ctx context.Context, key string) (store.Record, error) {
			rec, err := e.Store.Get(ctx, key)
			if err != nil {
				return rec, err
			}
			mu.Lock()
			defer mu.Unlock()
			if old, ok := kept[key]; ok && old.Version == rec.Version {
				rec = old
			}
			kept[key] = rec
			return rec, nil
		}
	}
}

// sameKey returns an engine to which keys are the same when fold makes them so. It gives back the key that was asked for.
func sameKey(name string, fold func(string) string, caught ...string) breakage {
	return each(name, func(e *engine) {
		e.get = func(ctx context.Context, key string) (store.Record, error) {
			rec, err := e.Store.Get(ctx, fold(key))
			rec.Key = key
			return rec, err
		}
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			key := rec.Key
			rec.Key = fold(key)
			rec, err := e.Store.Put(ctx, rec)
			rec.Key = key
			return rec, err
		}
		e.remove = func(ctx context.Context, key, version string) error { return e.Store.Delete(ctx, fold(key), version) }
	}, caught...)
}

// prefixes returns an engine with an idea of its own of what a prefix is.
func prefixes(name string, has func(key, prefix string) bool) breakage {
	return each(name, func(e *engine) {
		e.list = func(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
			return func(yield func(store.Record, error) bool) {
				for rec, err := range e.Store.List(ctx, "") {
					if (err != nil || has(rec.Key, prefix)) && !yield(rec, err) {
						return
					}
				}
			}
		}
	}, "PrefixIsLiteral")
}
