package file

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Get implements [store.Store]. It never waits for writers. It is linearizable because SQLite shows
// a transaction to others only when its log has been synced.
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	found, err := s.read(ctx, selectRow, key)
	if err != nil {
		return store.Record{}, err
	}
	if len(found) == 0 {
		return store.Record{}, driver.NotFound(key)
	}
	return s.record(found[0])
}

// look is Get that also returns the name of the life of the holder. A key that is not stored is a
// record.
func (s *Store) look(ctx context.Context, key string) (rec store.Record, holder string, err error) {
	found, err := s.read(ctx, selectRow, key)
	if err != nil || len(found) == 0 {
		return store.Record{Key: key}, "", err
	}
	rec, err = s.record(found[0])
	return rec, parseMark(found[0].mark).holderOf(rec), err
}

func (s *Store) read(ctx context.Context, query string, args ...any) (found []row, err error) {
	now := s.reading()
	if last := s.lookedAt.Load(); now.now.Sub(clock.Instant(last)) > placeEvery && s.lookedAt.CompareAndSwap(last, int64(now.now)) {
		if err := s.place.moved(); err != nil {
			return nil, s.end(err)
		}
	}
	err = s.use(ctx, query == selectRow, func(c *conn) (err error) {
		found, err = c.rows(now, query, args...)
		return explain(s.path, err)
	})
	if _, sqlite := code(err); sqlite != 0 { // for a new connection it may be the first to notice
		if moved := s.place.moved(); moved != nil {
			return nil, s.end(moved)
		}
	}
	return found, err
}

// use calls do with a connection for reading. A brief read borrows the writer's, where nothing is
// written and no other is free: to make one takes longer than all else that a short run does here.
func (s *Store) use(ctx context.Context, brief bool, do func(*conn) error) error {
	return s.readers.use(ctx, func() bool { return brief && s.borrow(do) }, do)
}

// borrow reports whether do was done with the writer's connection. An error is met again with one
// that can be closed: the writer's may have to stay, see [Store.write].
func (s *Store) borrow(do func(*conn) error) bool {
	if !s.turn.TryLock() {
		return false
	}
	defer s.turn.Unlock()
	return s.writer != nil && do(s.writer) == nil
}

// placeEvery bounds how long reads go on in files that have been moved away.
const placeEvery = 100 * time.Millisecond

// page is how many rows List reads at once. A long read would keep the log from being used anew.
const page = 256

// List implements [store.Store]. It yields by key, in the order of their bytes, and reads 256
// records at a time.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		query, from := selectFrom, prefix
		for {
			rows, err := s.read(ctx, query, from, int64(page))
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, r := range rows {
				if !strings.HasPrefix(r.key, prefix) || !yield(s.record(r)) {
					return
				}
			}
			if len(rows) < page {
				return
			}
			query, from = selectAfter, rows[len(rows)-1].key
		}
	}
}

// pool keeps connections for reading. Each is made when it is first needed.
type pool struct {
	path string
	free chan *conn // of capacity readers; nil stands for one that isn't made yet

	closing <-chan struct{} // the store's
	ended   func() error    // why that is closed
}

// readers is how many reads of one store go on at once: enough to keep a few cores busy.
const readers = 4

func newPool(path string, closing <-chan struct{}, ended func() error) *pool {
	p := &pool{path: path, free: make(chan *conn, readers), closing: closing, ended: ended}
	for range readers {
		p.free <- nil
	}
	return p
}

// use calls do with a connection, which is closed where do fails: whatever was wrong with it is not
// met again. Before it makes one, it asks whether it was done otherwise.
func (p *pool) use(ctx context.Context, otherwise func() bool, do func(*conn) error) error {
	select {
	case <-p.closing:
		return p.ended()
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var c *conn
	select {
	case c = <-p.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.closing:
		return p.ended()
	}
	defer func() { p.free <- c }()
	if c == nil && otherwise() {
		return nil
	}
	if c == nil {
		fresh, err := dialReader(p.path)
		if err != nil {
			return explain(p.path, err)
		}
		c = fresh
	}
	err := do(c)
	if err != nil {
		_ = c.close()
		c = nil
	}
	return err
}

// close waits for reads under way and closes the connections. The store is closing, so no more are
// taken.
func (p *pool) close() error {
	var errs []error
	for range readers {
		if c := <-p.free; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}
