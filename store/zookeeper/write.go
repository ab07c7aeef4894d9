package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store]. It takes one round trip, and one more to read the record that is in
// its way. The very first record takes a few more, for the root.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	w, stored, err := s.putting(rec)
	switch {
	case err != nil:
		return store.Record{}, err
	case w == nil:
		return store.Record{}, s.mismatch(ctx, rec.Key, rec.Version)
	}
	if err := s.write(ctx, w); err != nil {
		return store.Record{}, err
	}
	return stored, nil
}

// putting returns the write of a record, and the record as it is stored then; nil for a version
// that no record ever had.
func (s *Store) putting(rec store.Record) (*write, store.Record, error) {
	body, err := driver.Marshal(rec)
	if err != nil {
		return nil, store.Record{}, err
	}
	path := s.node(rec.Key)
	var next version // that the record will have
	var ops []any
	if rec.Version == "" {
		next = version{birth: newBirth()}
		ops = s.creation(path, next.birth, body)
	} else {
		v, ok := parseVersion(rec.Version)
		if !ok {
			return nil, store.Record{}, nil
		}
		if v.n <= s.last {
			next = version{v.birth, v.n + 1}
			ops = []any{
				&zk.CheckVersionRequest{Path: path + "/" + v.birth, Version: -1},
				&zk.SetDataRequest{Path: path, Data: encode(v.birth, body), Version: v.n},
			}
		} else { // the count is used up: another life, in one step
			next = version{birth: newBirth()}
			ops = append(deletion(path, v), s.creation(path, next.birth, body)...)
		}
	}
	stored := driver.Canonical(rec)
	stored.Version = next.String()
	return &write{key: rec.Key, version: rec.Version, ops: ops, size: len(body)}, stored, nil
}

func (s *Store) creation(path, birth string, body []byte) []any {
	return []any{
		&zk.CreateRequest{Path: path, Data: encode(birth, body), Acl: s.acl},
		&zk.CreateRequest{Path: path + "/" + birth, Acl: s.acl},
	}
}

func deletion(path string, v version) []any {
	return []any{
		&zk.DeleteRequest{Path: path + "/" + v.birth, Version: -1},
		&zk.DeleteRequest{Path: path, Version: v.n},
	}
}

// Delete implements [store.Store]. It takes one round trip, and one more to read the record that is
// in its way.
func (s *Store) Delete(ctx context.Context, key, version string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	v, ok := parseVersion(version)
	if !ok {
		return s.mismatch(ctx, key, version)
	}
	return s.write(ctx, &write{key: key, version: version, ops: deletion(s.node(key), v)})
}

// mismatch returns why a write at a version that no record ever had is not done.
func (s *Store) mismatch(ctx context.Context, key, version string) error {
	var session int64
	return s.explain(ctx, key, version, &session)
}

// explain returns why a write at a version was refused by a server whose session that is: because
// of what is stored instead.
func (s *Store) explain(ctx context.Context, key, version string, session *int64) error {
	r, err := s.load(ctx, key, session)
	switch {
	case err != nil:
		return err
	case r.rec.Version == "":
		return driver.NotFound(key)
	case r.rec.Version == version:
		v, _ := parseVersion(version)
		return driver.Corrupt(key, fmt.Errorf("its znode has no child %s: something else removed it: make it again", v.birth))
	}
	return &store.ConflictError{Current: r.rec}
}

// makeRoot makes the root and the znodes above it, as far as they are missing.
func (s *Store) makeRoot(ctx context.Context) error {
	for i := 1; i <= len(s.root); i++ {
		if i < len(s.root) && s.root[i] != '/' {
			continue
		}
		path := s.root[:i]
		_, err := call(ctx, s, func(conn *zk.Conn) (string, error) { return conn.Create(path, nil, 0, s.acl) })
		if errors.Is(err, zk.ErrNoAuth) && i < len(s.root) {
			continue // it may be there: the next one tells
		}
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("make the root %s: %w", s.root, s.readError(path, err))
		}
	}
	return nil
}
