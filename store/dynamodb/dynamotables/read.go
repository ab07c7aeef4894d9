package dynamotables

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	return s.get(ctx, key)
}

func (s *Store) get(ctx context.Context, key string) (store.Record, error) {
	read, err := s.table.Get(ctx, s.schema.keyRow(key))
	if err != nil {
		return store.Record{}, fmt.Errorf("%s: %w", key, err)
	}
	return s.show(ctx, key, read.Row)
}

// show turns what was found under key into the record that callers see.
func (s *Store) show(ctx context.Context, key string, found table.Row) (store.Record, error) {
	for {
		rec, ok, err := s.attempt(ctx, key, found)
		if err != nil || ok {
			return rec, err
		}
		read, err := s.table.Get(ctx, s.schema.keyRow(key))
		if err != nil {
			return store.Record{}, fmt.Errorf("%s: %w", key, err)
		}
		found = read.Row
	}
}

// attempt is show, or false when the row has changed meanwhile.
func (s *Store) attempt(ctx context.Context, key string, found table.Row) (rec store.Record, ok bool, err error) {
	if found == nil {
		return s.remembered(ctx, key)
	}
	r, err := s.parse(key, found)
	if err != nil {
		return store.Record{}, false, err
	}
	if !r.ours {
		rec, err = s.theirs(ctx, r)
		return rec, true, err
	}
	stands, err := s.settle(ctx, r)
	if err != nil {
		return store.Record{}, false, fmt.Errorf("%s: %w", key, err)
	}
	return r.rec, stands == settled, nil
}

// remembered returns the record of a key that has no row: free, if a neighbour deleted the row. Row
// and companion can't be read at once: the row must be missing between two reads of one version of
// the companion.
func (s *Store) remembered(ctx context.Context, key string) (rec store.Record, ok bool, err error) {
	c, err := s.companion(ctx, key)
	if err != nil || c.rev == "" {
		return store.Record{}, false, cmp.Or(err, driver.NotFound(key))
	}
	read, err := s.table.Get(ctx, s.schema.keyRow(key))
	switch {
	case err != nil:
		return store.Record{}, false, fmt.Errorf("%s: %w", key, err)
	case read.Row != nil:
		return store.Record{}, false, nil
	case c.ends:
		return store.Record{}, false, driver.NotFound(key)
	}
	again, err := s.companion(ctx, key)
	if err != nil || again.rev != c.rev {
		return store.Record{}, false, err
	}
	return store.Record{Key: key, Token: c.token, Past: c.rec.Past, Data: c.rec.Data, Version: c.version()}, true, nil
}

// theirs returns the record of a row that a neighbour wrote. A hold of its has no token of ours. It
// counts as a change of ownership all the same, so that ours from before is no longer the highest.
func (s *Store) theirs(ctx context.Context, r row) (store.Record, error) {
	c, err := s.companion(ctx, r.key)
	if err != nil {
		return store.Record{}, err
	}
	rec := r.rec
	rec.Past, rec.Data, rec.Token = c.rec.Past, c.rec.Data, c.token
	if r.hold.owner != "" {
		rec.Owner, rec.Token = r.hold.owner, min(c.token+1, fence.MaxToken)
		rec.TTL = s.ttl(r.key, rec.Version, r.hold)
		rec.Info = map[string]string{"held by": "a client of " + s.schema.name}
	}
	return rec, nil
}

// ttl returns how long a neighbour's hold lasts past its last renewal, as those who observe it have
// to count it. Where the neighbour's rule reads a wall clock, that is until the time in the row
// too, as it looked when this version was first seen: from then on no wall clock is asked again.
func (s *Store) ttl(key, version string, h hold) time.Duration {
	if h.until.IsZero() {
		return h.ttl
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.sighted[key]; ok && seen.version == version {
		return seen.ttl
	}
	delete(s.sighted, key)
	left := h.until.Sub(s.table.Clock().Wall())
	if left <= h.ttl {
		return h.ttl
	}
	left = min(left.Truncate(time.Second)+time.Second, store.MaxTTL)
	s.sighted[key] = sighted{version, left}
	return left
}
