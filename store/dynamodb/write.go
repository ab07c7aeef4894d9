package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Put implements [store.Store], by one conditional write.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if err := driver.Check(rec); err != nil {
		return store.Record{}, err
	}
	demanded := rec.Version
	rec.Version = newVersion()
	row := s.encode(rec)
	cond := table.Cond{Expr: "attribute_not_exists(#key)", Names: map[string]string{"#key": attrKey}, Absent: true}
	if demanded != "" {
		cond = versionIs(demanded)
	}
	mine := func(found table.Row) bool { return textOf(found, attrVersion) == rec.Version }
	if err := s.table.Put(ctx, rowKey(rec.Key), row, cond, mine); err != nil {
		return store.Record{}, s.outcome(rec.Key, err)
	}
	return s.decode(rec.Key, table.Read{Row: row})
}

// Delete implements [store.Store], by one conditional write.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	if err := s.table.Delete(ctx, rowKey(key), versionIs(version)); err != nil {
		return s.outcome(key, err)
	}
	return nil
}

// outcome is the error of a write to key.
func (s *Store) outcome(key string, err error) error {
	var refused *table.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Row == nil:
		return driver.NotFound(key)
	case errors.As(err, &refused):
		current, err := s.decode(key, table.Read{Row: refused.Row, Date: refused.Date})
		if err != nil {
			return err
		}
		return &store.ConflictError{Current: current}
	case errors.Is(err, store.ErrUnknownOutcome):
		return fmt.Errorf("%s: %w", key, err)
	}
	return err
}

// versionBytes are the random characters of a version: 80 bits.
const versionBytes = 16

func newVersion() string { return rand.Text()[:versionBytes] }

// versionIs is the condition that version is the stored one. One that no record of this engine can
// have doesn't reach the server, which might refuse it in its own way.
func versionIs(version string) table.Cond {
	if version == "" || len(version) > store.MaxKey || !utf8.ValidString(version) {
		version = "-"
	}
	return table.Cond{
		Expr: "#version = :version", Names: map[string]string{"#version": attrVersion},
		Values: table.Row{":version": &types.AttributeValueMemberS{Value: version}},
	}
}
