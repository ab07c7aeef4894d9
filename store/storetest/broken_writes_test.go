package storetest

import (
	"context"
	"errors"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// brokenWrites compare or swap wrongly.
var brokenWrites = []breakage{
	each("writes whatever the version", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			rec, err := force(ctx, e.Store, rec)
			if err != nil {
				return rec, err
			}
			return e.Store.Put(ctx, rec)
		}
	}, "CreateRace", "ConflictCarriesCurrent", "PutOfMissing", "VersionsAreNeverReused", "LateRequest", "LostReply"),
	each("creates over what is there", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			if rec.Version == "" {
				var err error
				if rec, err = force(ctx, e.Store, rec); err != nil {
					return rec, err
				}
			}
			return e.Store.Put(ctx, rec)
		}
	}, "CreateRace"),
	each("has an HTTP client that it doesn't name", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			httptrace.ContextClientTrace(ctx).GetConn("store:80")
			return e.Store.Put(ctx, rec)
		}
	}, "TracesReach"),
	{"has an HTTP client that no trace reaches", []string{"TracesReach"}, func() Instance {
		db := memory.NewDB(memory.Options{})
		return instanceOf(func() store.Store { return overHTTP{db.Open()} })
	}},
	each("compares first and writes then", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			current, err := store.Load(ctx, e.Store, rec.Key)
			if err == nil && current.Version != rec.Version {
				err = &store.ConflictError{Current: current}
			}
			if err != nil {
				return store.Record{}, err
			}
			time.Sleep(time.Nanosecond) // others come between
			if rec, err = force(ctx, e.Store, rec); err != nil {
				return rec, err
			}
			return e.Store.Put(ctx, rec)
		}
	}, "CreateRace", "Contention", "EverythingAtOnce"),
	shared("counts versions anew after a deletion", countAnew, "VersionsAreNeverReused"),
	each("deletes whatever the version", func(e *engine) {
		e.remove = func(ctx context.Context, key, _ string) error {
			rec, err := e.Store.Get(ctx, key)
			if err != nil {
				return err
			}
			return e.Store.Delete(ctx, key, rec.Version)
		}
	}, "DeleteChecksVersion", "RepeatedRequest", "LateRequest", "VersionsAreNeverReused"),
	each("takes a deletion of nothing for done", func(e *engine) {
		e.remove = func(ctx context.Context, key, version string) error {
			if err := e.Store.Delete(ctx, key, version); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		}
	}, "PutOfMissing", "LostReply"),
	each("calls a deleted record a conflict", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			got, err := e.Store.Put(ctx, rec)
			if errors.Is(err, store.ErrNotFound) {
				err = &store.ConflictError{Current: store.Record{Key: rec.Key}}
			}
			return got, err
		}
	}, "PutOfMissing"),
	each("gives a conflict without a record", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			got, err := e.Store.Put(ctx, rec)
			if errors.Is(err, store.ErrConflict) {
				err = &store.ConflictError{}
			}
			return got, err
		}
	}, "ConflictCarriesCurrent"),
	each("gives a conflict without a type", func(e *engine) {
		e.remove = func(ctx context.Context, key, version string) error {
			if err := e.Store.Delete(ctx, key, version); !errors.Is(err, store.ErrConflict) {
				return err
			}
			return store.ErrConflict
		}
	}, "ConflictCarriesCurrent", "DeleteChecksVersion"),
	versions("leaves the spaces of versions out", strings.TrimSpace),
	versions("compares versions as numbers", func(version string) string {
		if n, err := strconv.ParseUint(version, 10, 64); err == nil {
			return strconv.FormatUint(n, 10)
		}
		return version
	}),
	versions("looks at the beginning of a version", func(version string) string { return strings.Split(version, ".")[0] }),
	each("takes a nonce that it knows for done", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			got, err := e.Store.Put(ctx, rec)
			var c *store.ConflictError
			if errors.As(err, &c) && c.Current.Nonce == rec.Nonce {
				return c.Current, nil
			}
			return got, err
		}
	}, "LostReply"),
}

// versions returns an engine that compares what read makes of a version.
func versions(name string, read func(string) string) breakage {
	return each(name, func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			rec.Version = read(rec.Version)
			return e.Store.Put(ctx, rec)
		}
	}, "OtherVersionsNeverMatch")
}

// countAnew makes an engine whose versions are the number of writes since the key was created.
func countAnew(*memory.DB) func(*engine) {
	var mu sync.Mutex
	count := map[string]int{}         // writes of a key since its creation
	numbers := map[[2]string]string{} // by key and true version: the count
	return func(e *engine) {
		e.read = func(rec *store.Record) {
			mu.Lock()
			defer mu.Unlock()
			rec.Version = numbers[[2]string{rec.Key, rec.Version}]
		}
		truth := func(ctx context.Context, key, version string) string {
			rec, err := e.Store.Get(ctx, key)
			if err == nil && numbers[[2]string{key, rec.Version}] == version {
				return rec.Version
			}
			return version + "?"
		}
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			if rec.Version != "" {
				rec.Version = truth(ctx, rec.Key, rec.Version)
			} else {
				count[rec.Key] = 0
			}
			got, err := e.Store.Put(ctx, rec)
			if err == nil {
				count[rec.Key]++
				numbers[[2]string{rec.Key, got.Version}] = strconv.Itoa(count[rec.Key])
			}
			return e.out(got, err)
		}
		e.remove = func(ctx context.Context, key, version string) error {
			_, err := e.out(store.Record{}, e.Store.Delete(ctx, key, truth(ctx, key, version)))
			return err
		}
	}
}

// overHTTP says that it has a client of net/http.
type overHTTP struct{ *memory.Store }

func (o overHTTP) Properties() store.Properties {
	props := o.Store.Properties()
	props.OverHTTP = true
	return props
}
