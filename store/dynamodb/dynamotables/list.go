package dynamotables

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// List implements [store.Store]. It reads the whole table, and each row that a neighbour wrote once
// more. Rows whose keys no record can have are passed over.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		l := &listing{store: s, prefix: prefix, yield: yield, seen: map[string]bool{}}
		if err := l.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(store.Record{}, err)
		}
	}
}

// listing is one iteration.
type listing struct {
	store  *Store
	prefix string
	yield  func(store.Record, error) bool
	seen   map[string]bool // keys with a row
	alone  []string        // keys with a companion
}

// errLeft ends a listing whose loop was left.
var errLeft = errors.New("left")

func (l *listing) run(ctx context.Context) error {
	var from table.Row
	for {
		rows, _, next, err := l.store.table.Page(ctx, from, table.Cond{})
		if err != nil {
			return err
		}
		for _, attrs := range rows {
			if err := l.meet(ctx, attrs); err != nil {
				return err
			}
		}
		if next == nil {
			break
		}
		from = next
	}
	for _, key := range l.alone {
		if l.seen[key] {
			continue
		}
		if err := l.show(ctx, key, nil); err != nil {
			return err
		}
	}
	return nil
}

// meet takes note of one row of the table.
func (l *listing) meet(ctx context.Context, attrs table.Row) error {
	key, ok := l.store.schema.keyOf(attrs)
	name, companion := strings.CutPrefix(key, companionPrefix)
	switch {
	case !ok || !strings.HasPrefix(name, l.prefix) || driver.CheckKey(name) != nil:
		return nil
	case companion:
		l.alone = append(l.alone, name)
		return nil
	}
	l.seen[key] = true
	return l.show(ctx, key, attrs)
}

// show yields the record under key, if there is one; found is its row, nil to look for it.
func (l *listing) show(ctx context.Context, key string, found table.Row) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var rec store.Record
	var err error
	if found == nil {
		rec, err = l.store.get(ctx, key)
	} else {
		rec, err = l.store.show(ctx, key, found)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil && !errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("list: %w", err)
	}
	if !l.yield(rec, err) {
		return errLeft
	}
	return nil
}

// keyOf returns the key of a row, or false when the row is under another sort key than this
// store's.
func (sc *schema) keyOf(attrs table.Row) (string, bool) {
	if sc.sort != "" {
		if v, err := scalar(attrs, column{name: sc.sort}); err != nil || v == nil || *v != sc.sortValue {
			return "", false
		}
	}
	v, err := scalar(attrs, column{name: sc.key})
	if err != nil || v == nil {
		return "", false
	}
	return *v, true
}
