package consul

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. The server reports the change. Wait continues when the connection
// is lost or Consul has no leader, and ends with an error when Consul refuses to let it read.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	w := s.join(key)
	if w == nil {
		return store.Record{}, store.ErrClosed
	}
	defer s.leave(key, w)
	// A read under way, too, ends with Close.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(store.ErrClosed) })()
	seen, next := s.look(w)
	base := seen.row
	if seen.row.index == 0 || seen.row.err != nil || seen.row.rec.Version != version {
		// What the query last saw may be older than the version that is waited on.
		var err error
		if base, err = s.load(ctx, key); errors.Is(err, store.ErrClosed) {
			return store.Record{}, store.ErrClosed
		} else if err != nil || base.rec.Version != version {
			return base.rec.Clone(), err
		}
	}
	lives := seen.lives
	for {
		if seen.row.index > base.index || seen.lives != lives {
			if seen.row.err != nil || seen.row.rec.Version != version {
				return seen.row.rec.Clone(), seen.row.err
			}
		}
		if seen.refused != nil {
			return store.Record{}, fmt.Errorf("%s: %w", key, s.failed(ctx, seen.refused))
		}
		select {
		case <-next:
		case <-ctx.Done():
			return store.Record{}, context.Cause(ctx)
		}
		seen, next = s.look(w)
	}
}
