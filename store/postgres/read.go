package postgres

import (
	"context"
	"crypto/rand"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// row is a row of the table as the statements show it; its fields are nil where there is none.
type row struct {
	version, record *string
	age             *int64 // µs
}

// record returns what callers see of the row, which is there.
func (s *Store) record(key string, r row) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, driver.Corrupt(key, err)
	}
	rec, err := driver.Unmarshal([]byte(*r.record))
	if err != nil {
		return store.Record{}, driver.Corrupt(key, err)
	}
	rec.Key, rec.Version = key, *r.version
	if s.opts.ClockStep > 0 && r.age != nil {
		const most = int64(1<<63-1) / int64(time.Microsecond)
		rec.Age = max(time.Duration(min(*r.age, most))*time.Microsecond-s.opts.ClockStep, 0)
	}
	return rec, nil
}

// newVersion returns one that no record ever had.
func newVersion() string { return rand.Text() }

// asText returns version for a statement: nil, which equals nothing, where PostgreSQL has no such
// text.
func asText(version string) any {
	for _, c := range []byte(version) {
		if c <= ' ' || c > '~' {
			return nil
		}
	}
	return version
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	return s.stored(s.loadSure(ctx, key))
}

// stored has a record that isn't there be an error.
func (s *Store) stored(rec store.Record, err error) (store.Record, error) {
	if err == nil && rec.Version == "" {
		return store.Record{}, driver.NotFound(rec.Key)
	}
	return rec, err
}

// load is [store.Load] by that statement.
func (s *Store) load(ctx context.Context, statement, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	var r row
	_, err := s.ask(ctx, question{sql: statement, args: []any{key}, scan: func(rows pgx.Rows) error {
		var readOnly bool
		if err := rows.Scan(&readOnly, &r.version, &r.record, &r.age); err != nil {
			return err
		}
		return writable(readOnly)
	}})
	switch {
	case err != nil:
		return store.Record{}, err
	case r.version == nil:
		return store.Record{Key: key}, nil
	}
	return s.record(key, r)
}

func writable(readOnly bool) error {
	if readOnly {
		return errReadOnly
	}
	return nil
}

// page is how many rows List reads at once.
const page = 256

// afterAll follows every printable character in the order of bytes.
const afterAll = "\U0010FFFF"

// List implements [store.Store]. It yields by key, in the order of their bytes, and reads 256
// records at a time.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		statement, from := s.sql.first, prefix
		for {
			keys, found, err := s.page(ctx, statement, from, prefix+afterAll)
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for i, key := range keys {
				if strings.HasPrefix(key, prefix) && !yield(s.record(key, found[i])) {
					return
				}
			}
			if len(keys) < page {
				return
			}
			statement, from = s.sql.next, keys[len(keys)-1]
		}
	}
}

func (s *Store) page(ctx context.Context, statement, from, below string) (keys []string, found []row, err error) {
	_, err = s.ask(ctx, question{sql: statement, args: []any{from, below, page}, scan: func(rows pgx.Rows) error {
		var readOnly bool
		var key *string
		var r row
		if err := rows.Scan(&readOnly, &key, &r.version, &r.record, &r.age); err != nil {
			return err
		}
		if key != nil {
			keys, found = append(keys, *key), append(found, r)
		}
		return writable(readOnly)
	}})
	return keys, found, err
}
