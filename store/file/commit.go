package file

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := store.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	r := &request{key: rec.Key, version: rec.Version, next: s.newVersion(rec), body: string(body), lane: &s.takings}
	if keepsTerm(rec) {
		r.lane = &s.terms
	}
	if err := s.submit(ctx, r); err != nil {
		return store.Record{}, err
	}
	kept, err := store.Unmarshal(body)
	if err != nil {
		return store.Record{}, store.Corrupt(rec.Key, err)
	}
	kept.Key, kept.Version = rec.Key, r.next
	return kept, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return s.submit(ctx, &request{key: key, version: version, lane: &s.takings})
}

// serveBatch takes the file lock and does what is queued then, of both lanes.
func (s *Store) serveBatch(l *lane) {
	leave := l.gate.enter(s.clock, &s.running)
	s.turn.Lock()
	defer s.turn.Unlock()
	err := s.main.lock()
	leave()
	batch := s.take()
	if err != nil {
		err = fmt.Errorf("%s: its lock can't be taken: %w", s.path, err)
		for _, r := range batch {
			r.answer(err)
		}
		return
	}
	outcome := func(*request) error { return nil }
	if len(batch) > 0 {
		outcome = s.write(batch)
	}
	_ = s.main.unlock() // fails only for a bad descriptor
	var changed []string
	for _, r := range batch {
		err := outcome(r)
		if r.wrote && err == nil {
			changed = append(changed, r.key)
		}
		r.answer(err)
	}
	s.waiters.ring(changed)
}

// write does the batch in one transaction. It returns the function that tells the outcome of each of its requests.
func (s *Store) write(batch []*request) (outcome func(*request) error) {
	results := make(map[*request]error, len(batch))
	err := s.transact(batch, results)
	if err == nil {
		return func(r *request) error { return results[r] }
	}
	// A new connection is the surest way to a clean state. Closing also rolls back.
	if s.writer != nil {
		_, _ = s.writer.exec("ROLLBACK")
		_ = s.writer.close()
		s.writer = nil
	}
	cause := explain(s.path, err)
	if landed, ok := errors.AsType[*commitError](err); ok && landed.perhaps() {
		return func(r *request) error {
			if r.wrote {
				return store.Unknown(r.key, cause)
			}
			return fmt.Errorf("%s: not done: %w", r.key, cause)
		}
	}
	return func(r *request) error { return fmt.Errorf("%s: not done: %w", r.key, cause) }
}

// commitError is an error of COMMIT.
type commitError struct{ err error }

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// perhaps reports whether the transaction may be found in the log after a crash. A log whose last frame couldn't be
// written has no commit; after any other failure, of the sync above all, it may have one.
func (e *commitError) perhaps() bool {
	primary, _ := code(e.err)
	return primary != sqlite3.SQLITE_FULL && primary != sqlite3.SQLITE_READONLY
}

// transact does the batch. An error is that of the whole transaction; the outcome of one request goes into results.
func (s *Store) transact(batch []*request, results map[*request]error) error {
	if s.writer == nil {
		w, err := dialWriter(s.path)
		if err != nil {
			return err
		}
		s.writer = w
	}
	w := s.writer
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	now := s.clock.Now()
	wrote := false
	for _, r := range batch {
		result, err := s.do(w, r, now)
		if err != nil {
			return err
		}
		results[r] = result
		wrote = wrote || r.wrote
	}
	if !wrote {
		_, err := w.exec("ROLLBACK")
		return err
	}
	if _, err := w.exec("COMMIT"); err != nil {
		return &commitError{err}
	}
	return nil
}

// do does one write inside the transaction. result is why the write is not done; err ends the transaction.
func (s *Store) do(w *conn, r *request, now clock.Instant) (result, err error) {
	var n int64
	switch {
	case r.body == "":
		n, err = w.exec(deleteRow, r.key, r.version)
	case r.version == "":
		n, err = w.exec(insertRow, r.key, r.next, s.boot, int64(now), r.body)
	default:
		n, err = w.exec(updateRow, r.key, r.next, s.boot, int64(now), r.body, r.version)
	}
	if err != nil || n == 1 {
		r.wrote = err == nil
		return nil, err
	}
	current, err := w.rows(now, selectRow, r.key)
	switch {
	case err != nil:
		return nil, err
	case len(current) == 0:
		return store.NotFound(r.key), nil
	}
	rec, bad := current[0].record(s.boot)
	if bad != nil {
		return bad, nil
	}
	return &store.ConflictError{Current: rec}, nil
}
