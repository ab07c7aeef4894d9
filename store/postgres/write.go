package postgres

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	kept := driver.Canonical(rec)
	kept.Version = newVersion()
	statement, args := s.sql.create, append([]any{rec.Key, kept.Version, string(body)}, s.topics.args(rec.Key)...)
	if rec.Version != "" {
		statement, args = s.sql.update, append(args, asText(rec.Version))
	}
	if err := s.write(ctx, write{statement: statement, args: args, body: string(body), change: change{rec.Key, rec.Version, rec.Nonce, kept}}); err != nil {
		return store.Record{}, err
	}
	return kept, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	if version == "" { // never a stored one, and a row could only be made to bear it by hand
		rec, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		return &store.ConflictError{Current: rec}
	}
	args := append([]any{key, asText(version)}, s.topics.args(key)...)
	return s.write(ctx, write{statement: s.sql.remove, args: args, change: change{key: key, version: version}})
}

// errIgnored says that the server did nothing though the condition held.
var errIgnored = errors.New("the server reports neither success nor another version: is there a row-level security policy, a rule or a trigger on the table? Remove it")

// change is what a write is to change: the record under key, if it has that version. nonce is of
// what it makes of that, which is kept.
type change struct {
	key, version, nonce string
	kept                store.Record
}

// write has a change carried out.
func (s *Store) write(ctx context.Context, c write) error {
	s.changed.Store(int64(clock.System().Now()))
	defer s.doubts.Begin(c.key, c.version, c.nonce)()
	looks := s.watch.begin()
	if looks {
		defer s.watch.done()
	}
	for range maxRetries {
		w := c // an attempt that was given up is still a group's
		since := s.doubts.Now()
		unknown, err := s.attempt(ctx, &w, looks)
		switch {
		case err != nil && unknown:
			s.doubts.Unknown(c.key, c.nonce)
			s.waiters.Changed(c.key)
			return driver.Unknown(c.key, err)
		case err != nil:
			return err
		case w.done:
			s.doubts.Done(c.key, since)
			s.waiters.Changed(c.key) // the server doesn't tell who has the connection that listens
			return nil
		}
		current := ""
		if w.row.version != nil {
			current = *w.row.version
		}
		// Another write came first while this statement waited for it: what it did shows only now.
		if current == c.version {
			continue
		}
		rec := store.Record{Key: c.key}
		if current != "" {
			if rec, err = s.record(c.key, w.row); err != nil {
				return err
			}
		}
		rec, err = s.sure(ctx, rec)
		return outcome.Refusal(c.key, rec, err)
	}
	return errIgnored
}

// attempt has one attempt at a change made. One that looks at the replication is made alone.
func (s *Store) attempt(ctx context.Context, w *write, looks bool) (unknown bool, err error) {
	if !looks {
		return s.carryOut(ctx, w)
	}
	var seen replication
	s.send(ctx, w, w.statement.looking, true, seen.columns()...)
	if w.err == nil {
		s.watch.saw(seen)
	}
	return w.unknown, w.err
}
