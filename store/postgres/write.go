package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/internal/doubt"
	"github.com/leasehold/leasehold/store"
)

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := store.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	kept := store.Canonical(rec)
	kept.Version = newVersion()
	statement, args := s.sql.create, append([]any{rec.Key, kept.Version, string(body)}, s.topics.args(rec.Key)...)
	if rec.Version != "" {
		statement, args = s.sql.update, append(args, asText(rec.Version))
	}
	if err := s.write(ctx, statement, args, change{rec.Key, rec.Version, rec.Nonce, kept}); err != nil {
		return store.Record{}, err
	}
	return kept, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if version == "" { // never a stored one, and a row could only be made to bear it by hand
		rec, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		return &store.ConflictError{Current: rec}
	}
	return s.write(ctx, s.sql.remove, append([]any{key, asText(version)}, s.topics.args(key)...), change{key: key, version: version})
}

// errIgnored says that the server did nothing though the condition held.
var errIgnored = errors.New("the server reports neither success nor another version: is there a row-level security policy, a rule or a trigger on the table? Remove it")

// change is what a write is to change: the record under key, if it has that version. nonce is of what it makes of that, which is kept.
type change struct {
	key, version, nonce string
	kept                store.Record
}

// write carries out a change.
func (s *Store) write(ctx context.Context, statement changeStatement, args []any, c change) error {
	defer s.doubts.Begin(c.key, c.version, c.nonce)()
	looks := s.watch.begin()
	if looks {
		defer s.watch.done()
	}
	for range maxRetries {
		var done bool
		var r row
		var seen replication
		var set, told *string
		into := []any{&done, &r.version, &r.record, &r.age, &set, &told}
		q := question{sql: statement.plain, args: args, change: c}
		if looks {
			q.sql, q.seldom, into = statement.looking, true, append(into, seen.columns()...)
		}
		q.scan = func(rows pgx.Rows) error { return rows.Scan(into...) }
		q.answered = func() {
			if done {
				s.doubts.Landed(c.kept)
			}
		}
		since := s.doubts.Now()
		unknown, err := s.ask(ctx, q)
		if looks && err == nil {
			s.watch.saw(seen)
		}
		switch {
		case err != nil && unknown:
			s.doubts.Unknown(c.key, c.nonce)
			s.waiters.Changed(c.key)
			return store.Unknown(c.key, err)
		case err != nil:
			return err
		case done:
			s.doubts.Done(c.key, since)
			s.waiters.Changed(c.key) // the server doesn't tell who has the connection that listens
			return nil
		}
		current := ""
		if r.version != nil {
			current = *r.version
		}
		if current == c.version { // another write came first while this statement waited for it: what it did shows only now
			continue
		}
		rec := store.Record{Key: c.key}
		if current != "" {
			if rec, err = s.record(c.key, r); err != nil {
				return err
			}
		}
		rec, err = s.sure(ctx, rec)
		return doubt.Refusal(c.key, rec, err)
	}
	return errIgnored
}
