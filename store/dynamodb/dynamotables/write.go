package dynamotables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

var errReplaced = errors.New("the row was written, and replaced before it was seen whether a neighbour had come in between")

// Put implements [store.Store]. It is one conditional write to the row. A new token takes a second
// write, to the companion, and a key without a row a read of the companion first.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if err := driver.Check(rec); err != nil {
		return store.Record{}, err
	}
	before, kept, err := s.before(ctx, rec.Key, rec.Version)
	if err != nil {
		return store.Record{}, err
	}
	r, err := s.write(ctx, rec, before, kept)
	if err != nil {
		return store.Record{}, s.explain(ctx, rec.Key, err)
	}
	if rec.Token <= kept {
		s.forget(rec.Key)
		return r.rec, nil
	}
	stands, err := s.settleNew(ctx, r)
	switch {
	case err != nil:
		return store.Record{}, driver.Unknown(rec.Key, err)
	case stands == retracted:
		return store.Record{}, s.conflict(ctx, rec.Key)
	case stands == replaced && (before == nil || before.ID == nil):
		// A late claim that a reader has taken back, or a timely one that others have built on.
		return store.Record{}, driver.Unknown(rec.Key, errReplaced)
	}
	// A write over a row of ours can't be late: no other term fits between the two rows.
	return r.rec, nil
}

// before returns the stamp of the row that a write at that version is to replace, nil where there
// is to be none, and a token that the companion is known to have. The version of a key without a
// row is the companion's, and no write's condition can compare that: it is read, and the write that
// comes too late for it is taken back by its token.
func (s *Store) before(ctx context.Context, key, version string) (*stamp, fence.Token, error) {
	if st, ok := s.schema.parseStamp(version); ok {
		return &st, max(st.kept(), s.recall(key, st)), nil
	}
	if version != "" && !strings.HasPrefix(version, ofCompanion) {
		return nil, 0, s.conflict(ctx, key) // no version of this store's
	}
	c, err := s.companion(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case c.version() != version:
		return nil, 0, s.conflict(ctx, key)
	case c.ends:
		return nil, 0, s.finish(ctx, key, c)
	}
	return nil, c.token, nil
}

// write writes rec over the row of that stamp, or makes the row for nil, and returns the row that
// it made. kept is a token that the companion is known to have. The errors are those of
// [table.Table.Put].
func (s *Store) write(ctx context.Context, rec store.Record, before *stamp, kept fence.Token) (row, error) {
	text, err := driver.Marshal(rec)
	if err != nil {
		return row{}, err
	}
	r := row{key: rec.Key, ours: true}
	if r.rec, err = driver.Unmarshal(text); err != nil { // as it will be read
		return row{}, err
	}
	if s.schema.learn != nil {
		s.schema.learn(ctx, s.table)
	}
	id, wall := newID(), s.table.Clock().Wall()
	r.stamp = stamp{Columns: s.schema.write(rec, id, wall), ID: &id, Kept: decimal(int64(kept))}
	r.rec.Key, r.rec.Version = rec.Key, r.stamp.String()
	x := newExpr()
	cols, values := s.schema.attrs(r.stamp)
	for i, col := range cols {
		x.set(col, values[i])
	}
	x.set(recordAttr, ptr(string(text)))
	x.set(columnsAttr, ptr(string(mustJSON(r.stamp.Columns))))
	if s.schema.born != nil {
		for name, v := range s.schema.born(wall) {
			x.give(name, v)
		}
	}
	if before == nil {
		x.creates(s.schema.key)
	} else {
		x.matches(&s.schema, *before)
	}
	return r, s.table.Update(ctx, s.schema.keyRow(rec.Key), x.update(), x.cond(), has(versionAttr, id))
}

// explain turns the error of a write to a row into the caller's.
func (s *Store) explain(ctx context.Context, key string, err error) error {
	var refused *table.RefusedError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", key, err)
	}
	current, err := s.show(ctx, key, refused.Row)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: current}
}

// conflict returns the error of a write whose version is not the stored one.
func (s *Store) conflict(ctx context.Context, key string) error {
	current, err := s.get(ctx, key)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: current}
}
