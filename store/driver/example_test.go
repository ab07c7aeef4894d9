package driver_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// table is the database of this example. Each row has the number of the write that made it.
type table struct {
	mu     sync.Mutex
	rows   map[string]row
	writes uint64
}

type row struct {
	text    []byte
	version string
}

// engine implements [store.Store] on a table. It has no Wait of its own, so store.Wait polls it.
type engine struct {
	db     *table
	closed bool // db.mu guards it
}

// begin locks the table for one call.
func (e *engine) begin(ctx context.Context) (unlock func(), err error) {
	e.db.mu.Lock()
	switch {
	case e.closed:
		err = store.ErrClosed
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		e.db.mu.Unlock()
		return nil, err
	}
	return e.db.mu.Unlock, nil
}

// read returns the record under key. The table is locked.
func (t *table) read(key string) (store.Record, error) {
	r, ok := t.rows[key]
	if !ok {
		return store.Record{}, driver.NotFound(key)
	}
	rec, err := driver.Unmarshal(r.text)
	if err != nil {
		return store.Record{}, driver.Corrupt(key, err)
	}
	rec.Key, rec.Version = key, r.version
	return rec, nil
}

// match returns nil if version is the stored one, and otherwise why a write is refused. The table is locked.
func (t *table) match(key, version string) error {
	if t.rows[key].version == version { // "" is the version of a key that is not stored
		return nil
	}
	current, err := t.read(key)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: current}
}

func (e *engine) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	unlock, err := e.begin(ctx)
	if err != nil {
		return store.Record{}, err
	}
	defer unlock()
	return e.db.read(key)
}

func (e *engine) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	text, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	unlock, err := e.begin(ctx)
	if err != nil {
		return store.Record{}, err
	}
	defer unlock()
	if err := e.db.match(rec.Key, rec.Version); err != nil {
		return store.Record{}, err
	}
	e.db.writes++
	version := strconv.FormatUint(e.db.writes, 10)
	e.db.rows[rec.Key] = row{text: text, version: version}
	stored := driver.Canonical(rec)
	stored.Version = version
	return stored, nil
}

func (e *engine) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	unlock, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, ok := e.db.rows[key]; !ok {
		return driver.NotFound(key)
	}
	if err := e.db.match(key, version); err != nil {
		return err
	}
	delete(e.db.rows, key)
	return nil
}

func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		keys, err := e.keys(ctx, prefix)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for _, key := range keys { // the table is unlocked: the caller may use the store
			rec, err := e.Get(ctx, key)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if !yield(rec, err) || err != nil && !errors.Is(err, store.ErrCorrupt) {
				return
			}
		}
	}
}

func (e *engine) keys(ctx context.Context, prefix string) ([]string, error) {
	if err := driver.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	unlock, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all := slices.Sorted(maps.Keys(e.db.rows))
	return slices.DeleteFunc(all, func(key string) bool { return !strings.HasPrefix(key, prefix) }), nil
}

func (e *engine) Close() error {
	e.db.mu.Lock()
	defer e.db.mu.Unlock()
	e.closed = true
	return nil
}

// Write an engine: the codec, the checks and the errors are those of this package. A test runs storetest over this one.
func Example() {
	ctx := context.Background()
	st := &engine{db: &table{rows: map[string]row{}}}
	defer st.Close()

	first, err := st.Put(ctx, store.Record{Key: "billing", Owner: "host-1", Token: 1, TTL: store.MinTTL})
	fmt.Println(first.Version, err)
	_, err = st.Put(ctx, store.Record{Key: "billing", Owner: "host-2", Token: 2, TTL: store.MinTTL})
	fmt.Println(err)
	_, err = st.Get(ctx, "reports")
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// billing: record was changed by another write (held by host-1, token 1)
	// reports: record not found
}
