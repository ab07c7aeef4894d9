// Package memory keeps records in the memory of this process. It is the reference engine: its
// behaviour defines the contract of package store. It is for tests, and for programs whose
// contenders are all goroutines of one process.
//
// A [DB] is the data, and a [Store] is one client's handle to it. The data live as long as the DB
// does. So a test can close a store and open it again, or give every node of a simulated cluster a
// handle of its own.
//
// The package starts no goroutine. Inside a [testing/synctest] bubble a blocked Wait is durably
// blocked, provided that the store was opened in the bubble.
package memory

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of a [DB]. The zero value is ready for use.
type Options struct {
	Clock clock.Clock // measures the Age of records; clock.System() when nil
}

// New returns a store over data of its own.
func New(opts Options) *Store { return NewDB(opts).Open() }

// DB is a set of records. All methods may be called from any goroutine.
type DB struct {
	clock clock.Clock

	mu      sync.RWMutex
	last    uint64            // the latest version given to any key: so none ever has one twice
	rows    map[string]row    // by key
	watches map[string]*watch // by key; only of keys that somebody waits for
}

// row is one stored version. What it points to is never changed.
type row struct {
	rec     store.Record
	written clock.Instant
}

// watch is what the waiters for one key share.
type watch struct {
	changed chan struct{} // closed by the next write
	waiters int
}

// NewDB returns an empty database.
func NewDB(opts Options) *DB {
	db := &DB{clock: opts.Clock, rows: map[string]row{}, watches: map[string]*watch{}}
	if db.clock == nil {
		db.clock = clock.System()
	}
	return db
}

// Open returns a new handle. Closing it leaves the data and the other handles alone.
func (db *DB) Open() *Store { return &Store{db: db, closed: make(chan struct{})} }

// read returns a copy of a row for a caller. db.mu is held, or the row was copied while it was.
func (db *DB) read(r row, now clock.Instant) store.Record {
	rec := r.rec.Clone()
	rec.Age = max(now.Sub(r.written), 0)
	return rec
}

// match returns nil if version is the stored one of key, and otherwise why a write is not done.
// db.mu is held.
func (db *DB) match(key, version string) error {
	r, ok := db.rows[key]
	switch {
	case r.rec.Version == version: // "" is that of a key that isn't stored
		return nil
	case !ok:
		return driver.NotFound(key)
	}
	return &store.ConflictError{Current: db.read(r, db.clock.Now())}
}

// wake tells the waiters for key that it has changed. db.mu is held.
func (db *DB) wake(key string) {
	if w, ok := db.watches[key]; ok {
		close(w.changed)
		delete(db.watches, key)
	}
}

// join returns the watch on key, for one waiter more. db.mu is held.
func (db *DB) join(key string) *watch {
	w, ok := db.watches[key]
	if !ok {
		w = &watch{changed: make(chan struct{})}
		db.watches[key] = w
	}
	w.waiters++
	return w
}

// leave takes one waiter away that was not woken.
func (db *DB) leave(key string, w *watch) {
	db.mu.Lock()
	defer db.mu.Unlock()
	w.waiters--
	if w.waiters == 0 && db.watches[key] == w {
		delete(db.watches, key)
	}
}

// Store is a handle to a [DB]. It implements [store.Store] and [store.Waiter].
type Store struct {
	db     *DB
	closed chan struct{} // closed under db.mu
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Waiter = (*Store)(nil)
)

// ready returns why no operation may begin: the store was closed, or ctx is done. db.mu is held.
func (s *Store) ready(ctx context.Context) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	s.db.mu.RLock()
	defer s.db.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	r, ok := s.db.rows[key]
	if !ok {
		return store.Record{}, driver.NotFound(key)
	}
	return s.db.read(r, s.db.clock.Now()), nil
}

// Put implements [store.Store]. Its outcome is never unknown.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if err := driver.Check(rec); err != nil {
		return store.Record{}, err
	}
	kept, err := s.put(ctx, rec.Version, driver.Canonical(rec))
	if err != nil {
		return store.Record{}, err
	}
	return kept.Clone(), nil
}

// put stores rec, which nobody writes to afterwards, in the place of that version.
func (s *Store) put(ctx context.Context, version string, rec store.Record) (store.Record, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	if err := s.db.match(rec.Key, version); err != nil {
		return store.Record{}, err
	}
	s.db.last++
	rec.Version = strconv.FormatUint(s.db.last, 10)
	s.db.rows[rec.Key] = row{rec: rec, written: s.db.clock.Now()}
	s.db.wake(rec.Key)
	return rec, nil
}

// Delete implements [store.Store]. Its outcome is never unknown.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if _, ok := s.db.rows[key]; !ok {
		return driver.NotFound(key)
	}
	if err := s.db.match(key, version); err != nil {
		return err
	}
	delete(s.db.rows, key)
	s.db.wake(key)
	return nil
}

// List implements [store.Store]. It yields the records that were stored when the iteration began,
// sorted by key.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		rows, now, err := s.snapshot(ctx, prefix)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if ctx.Err() != nil {
				yield(store.Record{}, context.Cause(ctx))
				return
			}
			if !yield(s.db.read(rows[key], now), nil) {
				return
			}
		}
	}
}

func (s *Store) snapshot(ctx context.Context, prefix string) (map[string]row, clock.Instant, error) {
	if err := driver.CheckPrefix(prefix); err != nil {
		return nil, 0, err
	}
	s.db.mu.RLock()
	defer s.db.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return nil, 0, err
	}
	rows := map[string]row{}
	for key, r := range s.db.rows {
		if strings.HasPrefix(key, prefix) {
			rows[key] = r
		}
	}
	return rows, s.db.clock.Now(), nil
}

// Wait implements [store.Waiter]. A write wakes it; it doesn't poll.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	for {
		rec, w, err := s.look(ctx, key, version)
		if w == nil {
			return rec, err
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			s.db.leave(key, w)
			return store.Record{}, context.Cause(ctx)
		case <-s.closed:
			s.db.leave(key, w)
			return store.Record{}, store.ErrClosed
		}
	}
}

// look returns what Wait has to return, or a watch that tells when to look again. A write is either
// seen here or closes the watch, since both happen under one lock: no wake-up is lost.
func (s *Store) look(ctx context.Context, key, version string) (store.Record, *watch, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return store.Record{}, nil, err
	}
	r, ok := s.db.rows[key]
	switch {
	case r.rec.Version == version:
		return store.Record{}, s.db.join(key), nil
	case !ok:
		return store.Record{Key: key}, nil, nil
	}
	return s.db.read(r, s.db.clock.Now()), nil, nil
}

// Close implements [store.Store]. The data stay in the [DB].
func (s *Store) Close() error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

// Properties implements [store.Describer]. It returns what this engine guarantees.
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine: "memory", Consistency: "linearizable: one lock in this process", Fencing: store.FencingLinearizable,
		Read: store.ReadDurable, Settle: store.SettledByRead, Push: true, Age: true,
		CheapRefusal: true,
		Guarantee:    "for the goroutines of one process, as long as it lives",
	}
}
