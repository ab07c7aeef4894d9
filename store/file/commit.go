package file

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	return s.put(ctx, rec, false)
}

// PutOwn implements [driver.Witness]. The proof costs one open file as long as this process lives.
func (s *Store) PutOwn(ctx context.Context, rec store.Record) (store.Record, error) {
	if s.life != nil {
		s.life.own(s.wakeDir)
	}
	return s.put(ctx, rec, true)
}

func (s *Store) put(ctx context.Context, rec store.Record, own bool) (store.Record, error) {
	body, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	r := &request{key: rec.Key, version: rec.Version, next: s.newVersion(rec), lane: &s.takings}
	r.body = unsafe.String(unsafe.SliceData(body), len(body)) // nobody else has body
	r.mark, r.keeps = s.mark(rec, own), !own && rec.Owner != ""
	if keepsTerm(rec) {
		r.lane = &s.terms
	}
	if err := s.submit(ctx, r); err != nil {
		return store.Record{}, err
	}
	kept := driver.Canonical(rec)
	kept.Version = r.next
	return kept, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	return s.submit(ctx, &request{key: key, version: version, lane: &s.takings})
}

// serveBatch takes the file lock and does what is queued then, of both lanes. Nothing but the
// transaction happens under the lock.
func (s *Store) serveBatch(l *lane) {
	l.since.Store(int64(s.clock.Now()))
	leave := l.gate.enter(s.clock)
	s.waiters.ring(s.inTurn(l, leave))
}

// inTurn returns the keys that were changed. The callers are answered before the next batch has its
// turn, which gathers what they want then.
func (s *Store) inTurn(l *lane, leave func()) (changed []string) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.gather() == 0 { // the other lane's turn served them
		l.since.Store(0)
		leave()
		return nil
	}
	batch, outcome := s.writeLocked(l, leave)
	for _, r := range batch {
		err := outcome(r)
		if err == nil {
			changed = append(changed, r.key)
		}
		r.answer(err)
	}
	return changed
}

// writeLocked leaves the gate as soon as it has the file lock: then the next one gets in line for
// that.
func (s *Store) writeLocked(l *lane, leave func()) (batch []*request, outcome func(*request) error) {
	err := s.main.lock()
	l.since.Store(0)
	leave()
	batch = s.take()
	if err != nil {
		return batch, notDone(fmt.Errorf("%s: its lock can't be taken: %w", s.path, err))
	}
	if len(batch) > 0 { // callers may have withdrawn
		outcome = s.write(batch)
	}
	_ = s.main.unlock() // fails only for a bad descriptor
	return batch, outcome
}

func notDone(cause error) func(*request) error {
	return func(r *request) error { return fmt.Errorf("%s: not done: %w", r.key, cause) }
}

// write does the batch in one transaction. It returns the function that tells the outcome of each
// of its requests.
func (s *Store) write(batch []*request) (outcome func(*request) error) {
	// Who opens the path now gets other files: what is written to these nobody else can see.
	if err := s.place.moved(); err != nil {
		_ = s.end(err)
		return s.refused
	}
	err := s.transact(batch)
	if err == nil {
		return func(r *request) error { return r.result }
	}
	if s.writer != nil {
		_, _ = s.writer.exec("ROLLBACK") // fails where SQLite has done so itself
	}
	cause := explain(s.path, err)
	if commit, ok := errors.AsType[*commitError](err); ok {
		// The connection stays: its next transaction writes over what this one has left in the log,
		// whereas a new one could find it there and build on pages that never reached the disk.
		return commit.outcome(cause)
	}
	if s.writer != nil {
		_ = s.writer.close()
		s.writer = nil
	}
	return notDone(cause)
}

// commitError is an error of COMMIT.
type commitError struct{ err error }

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// outcome tells what became of the requests. A log whose last frame couldn't be written has no
// commit. After any other failure, of the sync above all, it may have one, which counts when the
// log is read after a crash.
func (e *commitError) outcome(cause error) func(*request) error {
	if primary, _ := code(e.err); primary == sqlite3.SQLITE_FULL || primary == sqlite3.SQLITE_READONLY {
		return notDone(cause)
	}
	return func(r *request) error {
		if r.wrote {
			return driver.Unknown(r.key, cause)
		}
		return notDone(cause)(r)
	}
}

// transact does the batch. An error is that of the whole transaction; the result of one request
// goes into it.
func (s *Store) transact(batch []*request) error {
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
	for _, r := range batch {
		var err error
		if r.result, err = s.do(w, r, now); err != nil {
			return err
		}
	}
	// Where nothing was written, SQLite's COMMIT writes and syncs nothing.
	if _, err := w.exec("COMMIT"); err != nil {
		return &commitError{err}
	}
	return nil
}

// do does one write inside the transaction. result is why the write is not done; err ends the
// transaction.
func (s *Store) do(w *conn, r *request, now clock.Instant) (result, err error) {
	var n int64
	switch {
	case r.body == "":
		n, err = w.exec(deleteRow, r.key, r.version)
	case r.version == "":
		n, err = w.exec(insertRow, r.key, r.next, r.mark, int64(now), r.body)
	case r.keeps:
		n, err = w.exec(keepHolder, r.key, r.next, r.mark, int64(now), r.body, r.version)
	default:
		n, err = w.exec(updateRow, r.key, r.next, r.mark, int64(now), r.body, r.version)
	}
	if err != nil || n == 1 {
		r.wrote = err == nil
		return nil, err
	}
	current, err := w.rows(s.reading(), selectRow, r.key)
	switch {
	case err != nil:
		return nil, err
	case len(current) == 0:
		return driver.NotFound(r.key), nil
	}
	rec, bad := s.record(current[0])
	if bad != nil {
		return bad, nil
	}
	return &store.ConflictError{Current: rec}, nil
}
