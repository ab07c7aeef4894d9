package dynamotables

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// companionPrefix begins the keys of companions. It has a character that no key of a record has.
const companionPrefix = "leasehold-token\t"

// The companion's own attributes; it has recordAttr too.
var (
	// The highest token of the key that anybody was told of.
	tokenAttr = column{name: "leasehold_token", number: true}
	revAttr   = column{name: "leasehold_rev"} // id of the write
	// Id of a deletion under way: with the row, the key is gone.
	endsAttr = column{name: "leasehold_ends"}
)

// companion is what outlives the neighbour's writes to a row. Its record is the one that bore the
// token when it was new.
type companion struct {
	token fence.Token
	rev   string // "" when there is no companion
	ends  bool   // it is being deleted
	rec   store.Record
}

// version is the one of the key while it has no row.
func (c companion) version() string {
	if c.rev == "" || c.ends {
		return ""
	}
	return ofCompanion + c.rev
}

// companion reads the companion of key, or returns one without a rev when there is none.
func (s *Store) companion(ctx context.Context, key string) (companion, error) {
	read, err := s.table.Get(ctx, s.schema.keyRow(companionPrefix+key))
	if err != nil {
		return companion{}, fmt.Errorf("%s: %w", key, err)
	}
	return s.parseCompanion(key, read.Row)
}

func (s *Store) parseCompanion(key string, attrs table.Row) (companion, error) {
	if attrs == nil {
		return companion{}, nil
	}
	c, err := parseCompanion(attrs)
	if err != nil {
		return companion{}, driver.Corrupt(key, fmt.Errorf("table %s, row %q: %w", s.table.Name, companionPrefix+key, err))
	}
	return c, nil
}

func parseCompanion(attrs table.Row) (c companion, err error) {
	token, err := scalar(attrs, tokenAttr)
	if err != nil {
		return c, err
	}
	rev, err := scalar(attrs, revAttr)
	if err != nil {
		return c, err
	}
	ends, err := scalar(attrs, endsAttr)
	switch {
	case err != nil:
		return c, err
	case token == nil:
		return c, missing(tokenAttr.name)
	case rev == nil || *rev == "":
		return c, missing(revAttr.name)
	}
	n, err := strconv.ParseUint(*token, 10, 64)
	if err != nil || n > uint64(fence.MaxToken) {
		return c, &attributeError{tokenAttr.name, *token + ": want a token"}
	}
	c.token, c.rev, c.ends = fence.Token(n), *rev, ends != nil
	c.rec, err = body(attrs)
	return c, err
}

// raise has the companion know the token of rec, and returns the token that it has then: a higher
// one if it knew one. A late copy must not make a companion that was dropped.
func (s *Store) raise(ctx context.Context, rec store.Record) (fence.Token, error) {
	text, err := driver.Marshal(rec)
	if err != nil {
		return 0, err
	}
	rev, x := newID(), newExpr()
	token := decimal(int64(rec.Token))
	x.set(tokenAttr, token)
	x.set(revAttr, &rev)
	x.set(recordAttr, ptr(string(text)))
	x.set(endsAttr, nil)
	if s.schema.beside != nil {
		for name, v := range s.schema.beside(rev) {
			x.sets = append(x.sets, x.name(name)+" = "+x.value(v))
		}
	}
	x.creates(tokenAttr.name)
	x.conds = []string{x.conds[0] + " OR " + x.name(tokenAttr.name) + " < " + x.value(tokenAttr.value(*token))}
	err = s.table.Update(ctx, s.schema.keyRow(companionPrefix+rec.Key), x.update(), x.cond(), has(revAttr, rev))
	var refused *table.RefusedError
	if !errors.As(err, &refused) {
		return rec.Token, err
	}
	c, err := s.parseCompanion(rec.Key, refused.Row)
	return c.token, err
}

// mark has a companion end with the row, if it is still as it was read, and returns it as it is
// then.
func (s *Store) mark(ctx context.Context, key string, c companion) (companion, error) {
	if c.rev == "" {
		return c, nil
	}
	x := newExpr()
	x.is(revAttr, &c.rev)
	c.rev, c.ends = newID(), true
	x.set(revAttr, &c.rev)
	x.set(endsAttr, &c.rev)
	return c, s.table.Update(ctx, s.schema.keyRow(companionPrefix+key), x.update(), x.cond(), has(revAttr, c.rev))
}

// unmark takes a mark back.
func (s *Store) unmark(ctx context.Context, key string, c companion) error {
	if c.rev == "" {
		return nil
	}
	x := newExpr()
	x.is(revAttr, &c.rev)
	rev := newID()
	x.set(revAttr, &rev)
	x.set(endsAttr, nil)
	return s.table.Update(ctx, s.schema.keyRow(companionPrefix+key), x.update(), x.cond(), has(revAttr, rev))
}

// drop deletes a companion if it is still as it was read.
func (s *Store) drop(ctx context.Context, key string, c companion) error {
	if c.rev == "" {
		return nil
	}
	x := newExpr()
	x.is(revAttr, &c.rev)
	return s.table.Delete(ctx, s.schema.keyRow(companionPrefix+key), x.cond())
}

// has recognises a write by the id that it left in an attribute.
func has(col column, id string) func(table.Row) bool {
	return func(row table.Row) bool {
		v, err := scalar(row, col)
		return err == nil && v != nil && *v == id
	}
}
