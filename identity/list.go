package identity

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Entry is a value that an instance has.
type Entry struct {
	Value    string
	Number   uint64    // see [Hold.Number]
	Name     string    // of the instance; "" for one without
	Assigned bool      // an assignment, which no process keeps
	Floor    time.Time // of its window; zero while that isn't stored yet
	Ceiling  time.Time
	Record   store.Record // of the lease; its holder may have died since
}

// List returns a pool, and its values that an instance has, in order. It reads all values that were
// ever held, and blocks until the store has answered or ctx is done. The error matches
// [ErrUndeclared] when there is no such pool.
func List(ctx context.Context, st store.Store, pool string) (Declared, []Entry, error) {
	of, entries, err := list(ctx, st, pool)
	if err != nil {
		return Declared{}, nil, fmt.Errorf("list the values of %s: %w", pool, err)
	}
	return of, entries, nil
}

func list(ctx context.Context, st store.Store, pool string) (Declared, []Entry, error) {
	if err := (Options{}).check(pool); err != nil {
		return Declared{}, nil, err
	}
	_, p, s, err := declared(ctx, st, pool, Values{})
	if err != nil {
		return Declared{}, nil, err
	}
	windows, err := windowsOf(ctx, st, pool)
	if err != nil {
		return Declared{}, nil, err
	}
	places := map[string]int{}
	for i := range s.size {
		places[pools.Key(pool, s.value(i))] = i
	}
	held := map[int]Entry{}
	for rec, err := range st.List(ctx, pools.Key(pool, "")) {
		if err != nil {
			return Declared{}, nil, err
		}
		place, ok := places[rec.Key]
		if !ok || rec.Owner == "" {
			continue
		}
		e := Entry{Value: s.value(place), Number: s.low + uint64(place), Record: rec}
		if w := windows[windowKey(pool, e.Value)]; w.Token == rec.Token {
			e.Name, e.Assigned, e.Floor, e.Ceiling = w.Name, w.Standing && rec.Session == "", w.Floor, w.Ceiling
		}
		held[place] = e
	}
	entries := make([]Entry, 0, len(held))
	for _, place := range slices.Sorted(maps.Keys(held)) {
		entries = append(entries, held[place])
	}
	return Declared{pool, s.Values, s.size, p.Layout}, entries, nil
}

// Declared is a pool.
type Declared struct {
	Pool   string
	Values Values
	Size   int
	// Of the ids that are made with the values, as [flake.ParseLayout] reads it; "" if none was
	// named.
	Layout string
}

// Pools returns the pools of a store, by name. It lists all records of pools except their values,
// and blocks until the store has answered or ctx is done.
func Pools(ctx context.Context, st store.Store) ([]Declared, error) {
	var all []Declared
	for rec, err := range st.List(ctx, recordPrefix) {
		if err != nil {
			return nil, fmt.Errorf("list the pools: %w", err)
		}
		escaped := strings.TrimPrefix(rec.Key, recordPrefix)
		if strings.Contains(escaped, "/") {
			continue
		}
		name, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, driver.Corrupt(rec.Key, err)
		}
		p, s, err := readPool(rec)
		if err != nil {
			return nil, err
		}
		all = append(all, Declared{name, s.Values, s.size, p.Layout})
	}
	slices.SortFunc(all, func(a, b Declared) int { return strings.Compare(a.Pool, b.Pool) })
	return all, nil
}
