package identity

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/store"
)

// Duplicate is a value that several have.
type Duplicate struct {
	Value   string
	Holders []string // by name; two at least
}

// Duplicates returns the values of a pool that more than one instance has, in order. An instance
// has the value that its name got last, and the one that it holds. A holder without a name appears
// by its owner id.
//
// Claims make no duplicates. They come from a store that was restored, and from records that were
// written by hand. A third cause is a name whose value was given to another one while the store
// failed. Duplicates lists all values and names, and blocks until the store has answered or ctx is
// done.
func Duplicates(ctx context.Context, st store.Store, pool string) ([]Duplicate, error) {
	if err := (Options{}).check(pool); err != nil {
		return nil, err
	}
	owners := map[string]string{} // by the key of the value's record
	values := map[string]string{}
	_, _, s, err := declared(ctx, st, pool, Values{})
	if err != nil {
		return nil, err
	}
	for rec, err := range st.List(ctx, pools.Key(pool, "")) {
		if err != nil {
			return nil, err
		}
		owners[rec.Key] = rec.Owner
	}
	for i := range s.size {
		value := s.value(i)
		values[windowKey(pool, value)] = value
	}
	has := map[[2]string]bool{}
	for rec, err := range st.List(ctx, poolKey(pool)+"/") {
		if err != nil {
			return nil, err
		}
		if value, ok := values[rec.Key]; ok {
			w, err := readWindow(rec)
			if err != nil {
				return nil, err
			}
			if owner := owners[pools.Key(pool, value)]; owner != "" {
				has[[2]string{value, cmp.Or(w.Name, owner)}] = true
			}
		}
		if strings.HasPrefix(rec.Key, nameKey(pool, "")) {
			n, err := readNamed(rec)
			if err != nil {
				return nil, err
			}
			if n.Value != "" {
				has[[2]string{n.Value, n.Name}] = true
			}
		}
	}
	return duplicates(maps.Keys(has)), nil
}

// DuplicatesIn returns the values that more than one holder has, in order. values has the value of
// each holder, such as a search in a configuration management's inventory returns. A holder whose
// value is "" has none.
func DuplicatesIn(values map[string]string) []Duplicate {
	return duplicates(func(yield func([2]string) bool) {
		for holder, value := range values {
			if value != "" && !yield([2]string{value, holder}) {
				return
			}
		}
	})
}

// duplicates groups pairs of a value and a holder.
func duplicates(pairs func(yield func([2]string) bool)) []Duplicate {
	holders := map[string][]string{}
	for pair := range pairs {
		holders[pair[0]] = append(holders[pair[0]], pair[1])
	}
	var all []Duplicate
	for _, value := range slices.SortedFunc(maps.Keys(holders), natural) {
		if len(holders[value]) > 1 {
			slices.Sort(holders[value])
			all = append(all, Duplicate{value, holders[value]})
		}
	}
	return all
}

// natural orders integers by their size, and other texts as they are.
func natural(a, b string) int {
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if digits(a) && digits(b) && len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}
