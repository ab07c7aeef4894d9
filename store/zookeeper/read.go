package zookeeper

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// barrier returns when the server at hand has applied every write that was acknowledged before
// barrier was called: it has a quorum agree on a multi that changes nothing.
func (s *Store) barrier(ctx context.Context) error {
	_, err := call(ctx, s, func(conn *zk.Conn) ([]zk.MultiResponse, error) {
		return conn.Multi(&zk.CheckVersionRequest{Path: s.root, Version: -1})
	})
	if errors.Is(err, zk.ErrNoNode) { // there is no root, as a quorum agreed
		return nil
	}
	return err
}

// fresh has read ask a server that has applied every write that was acknowledged before. *session
// is the session in which that is known to hold, 0 when it is not known of any. Errors come back as
// the client returned them.
func fresh[T any](ctx context.Context, s *Store, session *int64, read func(*zk.Conn) (T, error)) (T, error) {
	for {
		if now := s.conn.SessionID(); *session == 0 || *session != now {
			if err := s.barrier(ctx); err != nil {
				var none T
				return none, err
			}
			*session = now
		}
		v, err := call(ctx, s, read)
		if !answered(err) || s.conn.SessionID() == *session {
			return v, err
		}
	}
}

// found is what a read of a znode brings.
type found struct {
	data []byte
	stat *zk.Stat
}

func readNode(path string) func(*zk.Conn) (found, error) {
	return func(conn *zk.Conn) (found, error) {
		data, stat, err := conn.Get(path)
		return found{data, stat}, err
	}
}

// load reads a record as fresh does. A key that is not stored is a row without a version.
func (s *Store) load(ctx context.Context, key string, session *int64) (row, error) {
	path := s.node(key)
	f, err := fresh(ctx, s, session, readNode(path))
	return s.rowOf(key, f, err)
}

// rowOf returns the row that was read, or the error of the read.
func (s *Store) rowOf(key string, f found, err error) (row, error) {
	if errors.Is(err, zk.ErrNoNode) {
		return row{rec: store.Record{Key: key}}, nil
	}
	if err != nil {
		return row{}, s.readError(s.node(key), err)
	}
	return decode(key, f.data, f.stat)
}

// Get implements [store.Store]. It takes two round trips.
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	var session int64
	r, err := s.load(ctx, key, &session)
	if err == nil && r.rec.Version == "" {
		return store.Record{}, driver.NotFound(key)
	}
	return r.rec, err
}

// listBatch is how many records List reads at a time.
const listBatch = 64

// List implements [store.Store]. It yields sorted by key. It first reads the names of all records,
// also of those without the prefix.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		var session int64
		names, err := s.names(ctx, prefix, &session)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for batch := range slices.Chunk(names, listBatch) {
			if !s.yieldBatch(ctx, batch, &session, yield) {
				return
			}
		}
	}
}

// names returns the sorted names of the znodes of keys with that prefix. Those that no key has are
// among them.
func (s *Store) names(ctx context.Context, prefix string, session *int64) ([]string, error) {
	names, err := fresh(ctx, s, session, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(s.root)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil // nothing was ever stored
	}
	if err != nil {
		return nil, s.readError(s.root, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		key, ok := keyOf(name)
		if !ok {
			key = name
		}
		return !strings.HasPrefix(key, prefix)
	})
	slices.Sort(names)
	return names, nil
}

// yieldBatch reads the znodes with these names and yields what is in them. It reports whether to go
// on.
func (s *Store) yieldBatch(ctx context.Context, names []string, session *int64, yield func(store.Record, error) bool) bool {
	type read struct {
		found
		err error
	}
	reads, err := fresh(ctx, s, session, func(conn *zk.Conn) ([]read, error) {
		reads := make([]read, len(names))
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() { reads[i].found, reads[i].err = readNode(s.root + "/" + name)(conn) })
		}
		all.Wait()
		for _, r := range reads {
			if !answered(r.err) {
				return nil, r.err
			}
		}
		return reads, nil
	})
	if err != nil {
		yield(store.Record{}, s.readError(s.root, err))
		return false
	}
	for i, name := range names {
		if ctx.Err() != nil {
			yield(store.Record{}, context.Cause(ctx))
			return false
		}
		key, ok := keyOf(name)
		if !ok || driver.CheckKey(key) != nil {
			if !yield(store.Record{}, driver.Corrupt(name, errForeignName)) {
				return false
			}
			continue
		}
		r, err := s.rowOf(key, reads[i].found, reads[i].err)
		if err == nil && r.rec.Version == "" {
			continue // deleted since
		}
		if !yield(r.rec, err) {
			return false
		}
	}
	return true
}
