package dynamotables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Delete implements [store.Store]. It first marks the companion, so that the record is gone with
// the row: one of the two alone shows no record any more. It takes a read and three writes.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	st, ok := s.schema.parseStamp(version)
	if !ok && !strings.HasPrefix(version, ofCompanion) {
		return s.conflict(ctx, key)
	}
	read, err := s.table.Get(ctx, s.schema.keyRow(key))
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	c, err := s.companion(ctx, key)
	if err != nil {
		return err
	}
	if !ok {
		return s.deleteAlone(ctx, key, version, read.Row, c)
	}
	if r, err := s.schema.parse(read.Row); read.Row == nil || err != nil || r.stamp.String() != version {
		return s.explain(ctx, key, &table.RefusedError{Row: read.Row})
	}
	return s.deleteBoth(ctx, key, st, c)
}

// deleteAlone is Delete at the version of a key that has no row.
func (s *Store) deleteAlone(ctx context.Context, key, version string, found table.Row, c companion) error {
	if found != nil || c.version() != version {
		return s.conflict(ctx, key)
	}
	if err := s.drop(ctx, key, c); err != nil {
		return s.explainDrop(ctx, key, err)
	}
	return nil
}

// explainDrop turns the error of a write to a companion that is not there any more as it was read
// into the caller's.
func (s *Store) explainDrop(ctx context.Context, key string, err error) error {
	var refused *table.RefusedError
	if errors.As(err, &refused) {
		return s.conflict(ctx, key)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// deleteBoth is Delete at the version of a row.
func (s *Store) deleteBoth(ctx context.Context, key string, st stamp, c companion) error {
	c, err := s.mark(ctx, key, c)
	if err != nil {
		return s.explainDrop(ctx, key, err)
	}
	x := newExpr()
	x.matches(&s.schema, st)
	if err := s.table.Delete(ctx, s.schema.keyRow(key), x.cond()); err != nil {
		var refused *table.RefusedError
		if errors.As(err, &refused) && refused.Row != nil {
			if err := s.unmark(ctx, key, c); err != nil && !errors.As(err, &refused) {
				return fmt.Errorf("%s: it was changed meanwhile, and its companion can't be restored: %w", key, err)
			}
		}
		return s.explain(ctx, key, err)
	}
	s.forget(key)
	var refused *table.RefusedError
	if err := s.drop(ctx, key, c); err != nil && !errors.As(err, &refused) {
		return driver.Unknown(key, err)
	}
	return nil
}

// finish ends a deletion that somebody else began, for one who found no record of the key.
func (s *Store) finish(ctx context.Context, key string, c companion) error {
	read, err := s.table.Get(ctx, s.schema.keyRow(key))
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if read.Row != nil {
		return s.explain(ctx, key, &table.RefusedError{Row: read.Row})
	}
	var refused *table.RefusedError
	if err := s.drop(ctx, key, c); err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
