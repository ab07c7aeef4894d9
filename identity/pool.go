package identity

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// recordPrefix begins the keys of pools, windows and names.
const recordPrefix = ".identity/"

const format = 1

func poolKey(pool string) string { return recordPrefix + url.PathEscape(pool) }

func windowKey(pool, value string) string { return poolKey(pool) + "/value/" + url.PathEscape(value) }

func nameKey(pool, name string) string { return poolKey(pool) + "/name/" + url.PathEscape(name) }

// pool is the data of a pool's record: what its values are, and what is probably free.
type pool struct {
	Format int    `json:"v"`
	Values Values `json:"values"`
	Layout string `json:"layout,omitempty"` // of the ids that are made with them
	New    []byte `json:"new"`              // a bit for each value that probably was never held
	// Places of released values, the one released first before the others.
	Free []int `json:"free,omitempty"`
	Full *full `json:"full,omitempty"` // what a look at all values showed, if none was free

	// When values were released last, and before that, by those clocks: a hint at how many are
	// about.
	Last   time.Time `json:"last,omitzero"`
	Before time.Time `json:"before,omitzero"`

	// Since when somebody looks at all values, by its wall clock.
	Looking time.Time `json:"looking,omitzero"`
}

// full is what is known of an exhausted pool.
type full struct {
	At      time.Time     `json:"at"` // by the wall clock of whoever looked
	Held    int           `json:"held"`
	Holders []string      `json:"holders,omitempty"`
	Soonest int           `json:"soonest"` // place of the value whose hold was to expire first
	Expires time.Duration `json:"expires"` // and when, from At on
}

// maxFree bounds the released values in the index. Those that have no room are found when all are
// looked at.
const maxFree = 1024

func newPool(s *set) pool {
	p := pool{Format: format, Values: s.Values, New: make([]byte, (s.size+7)/8)}
	for i := range s.size {
		p.New[i/8] |= 1 << (i % 8)
	}
	return p
}

// readPool reads a pool's record, which is stored.
func readPool(rec store.Record) (pool, set, error) {
	var p pool
	if err := json.Unmarshal(rec.Data, &p); err != nil {
		return pool{}, set{}, driver.Corrupt(rec.Key, err)
	}
	if p.Format != format {
		return pool{}, set{}, driver.Corrupt(rec.Key, fmt.Errorf("its data have format %d: this version reads format %d", p.Format, format))
	}
	s, err := p.Values.check()
	if err == nil && len(p.New) != (s.size+7)/8 {
		err = fmt.Errorf("its index has %d bytes for %d values", len(p.New), s.size)
	}
	outside := func(i int) bool { return i < 0 || i >= s.size }
	if err == nil && (slices.ContainsFunc(p.Free, outside) || p.Full != nil && outside(p.Full.Soonest)) {
		err = fmt.Errorf("its index names a value beyond %d", s.size)
	}
	if err != nil {
		return pool{}, set{}, driver.Corrupt(rec.Key, err)
	}
	return p, s, nil
}

func (p *pool) isNew(i int) bool { return p.New[i/8]>>(i%8)&1 == 1 }

// unused returns the places of values that probably were never held.
func (p *pool) unused(size int) []int {
	var all []int
	for i := range size {
		if p.isNew(i) {
			all = append(all, i)
		}
	}
	return all
}

// take takes places out of the index.
func (p *pool) take(places ...int) {
	for _, i := range places {
		p.New[i/8] &^= 1 << (i % 8)
	}
	p.Free = slices.DeleteFunc(p.Free, func(i int) bool { return slices.Contains(places, i) })
}

// add puts a value that was released at the end of the index.
func (p *pool) add(i int) {
	p.take(i)
	p.Full = nil
	if len(p.Free) < maxFree {
		p.Free = append(p.Free, i)
	}
}

// declared returns the record of a pool that there is; values, if any are given, have to be its
// values.
func declared(ctx context.Context, st store.Store, name string, values Values) (store.Record, pool, set, error) {
	rec, err := store.Load(ctx, st, poolKey(name))
	if err == nil && rec.Version == "" {
		err = ErrUndeclared
	}
	if err != nil {
		return store.Record{}, pool{}, set{}, err
	}
	return matching(name, rec, values)
}

// matching reads a pool's record, and sees that it is a pool of those values, if any are given.
func matching(name string, rec store.Record, values Values) (store.Record, pool, set, error) {
	p, s, err := readPool(rec)
	if err == nil && !values.isZero() {
		asked, wrong := values.check()
		if err = wrong; err == nil && !asked.equal(s.Values) {
			err = &MismatchError{Pool: name, Stored: s.Values, Asked: asked.Values}
		}
	}
	if err != nil {
		return store.Record{}, pool{}, set{}, err
	}
	return rec, p, s, nil
}

// put tries once to store the index. Another write in between, or a failure, leaves it as it is: it
// is a hint.
func put(ctx context.Context, st store.Store, rec store.Record, p pool) (store.Record, bool) {
	var err error
	if rec.Data, err = json.Marshal(p); err != nil {
		return store.Record{}, false
	}
	rec.Nonce = rand.Text()
	rec, err = st.Put(ctx, rec)
	return rec, err == nil
}
