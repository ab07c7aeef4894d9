package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Confirm implements [store.Confirmer]. One statement has the read, and a message in the
// write-ahead log. Its commit waits for the same standbys as other commits. It is one round trip,
// and blocks while too few standbys answer. On a primary that was replaced it fails, or blocks, as
// long as that primary's standby doesn't follow it any more.
func (s *Store) Confirm(ctx context.Context, key string) (store.Record, error) {
	return s.stored(s.confirm(ctx, key))
}

// confirm is Confirm, where a key that isn't stored is no error.
func (s *Store) confirm(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	c := &confirmation{key: key}
	_, err := s.confirms.Do(ctx, c, func() { c.rec, c.err = s.load(ctx, s.sql.confirm, key) })
	if err == nil { // else c is the group's
		err = c.err
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("%s: can't be confirmed: %w", key, err)
	}
	s.doubts.Confirmed(key, c.rec.Nonce)
	return c.rec, nil
}

// confirmation is one Confirm, and what came of it.
type confirmation struct {
	key string
	rec store.Record
	err error
}

// Key and Size have confirmations sent in groups: one commit is as good for many reads before it,
// and a pool of few connections would have them wait for each other's commits.
func (c *confirmation) Key() string { return c.key }

func (c *confirmation) Size() int { return len(c.key) }

// confirmTogether confirms records of different keys in one statement.
func (s *Store) confirmTogether(ctx context.Context, group []*confirmation) {
	keys := make([]string, len(group))
	for i, c := range group {
		keys[i] = c.key
	}
	_, err := s.ask(ctx, question{sql: s.sql.confirmAll, args: []any{keys}, scan: func(rows pgx.Rows) error {
		var readOnly bool
		var n int
		var r row
		if err := rows.Scan(&readOnly, &n, &r.version, &r.record, &r.age); err != nil {
			return err
		}
		c := group[n-1]
		if c.rec, c.err = (store.Record{Key: c.key}), nil; r.version != nil {
			c.rec, c.err = s.record(c.key, r)
		}
		return writable(readOnly)
	}})
	for _, c := range group {
		if err != nil { // the rows came before it
			c.rec, c.err = store.Record{}, err
		}
	}
}

// loadSure is [store.Load], behind a commit of its own where the record shows a write in doubt.
func (s *Store) loadSure(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.load(ctx, s.sql.get, key)
	if err != nil {
		return rec, err
	}
	return s.sure(ctx, rec)
}

// sure returns what was read, or what is read behind a commit where that shows a write in doubt:
// the server may show a write that no standby has.
func (s *Store) sure(ctx context.Context, rec store.Record) (store.Record, error) {
	if !s.doubts.Shows(rec.Key, rec.Nonce) {
		return rec, nil
	}
	return s.confirm(ctx, rec.Key)
}
