package kubernetes

import (
	"context"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. It fails when the watch can't be started. After that it continues
// over lost connections, restarts of the server and compacted histories, until the server refuses
// it.
func (s *Store) Wait(ctx context.Context, key, ver string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	w, err := s.hub.join(key, ver)
	if err != nil {
		return store.Record{}, err
	}
	defer s.hub.leave(w)
	for {
		select {
		case r := <-w.heard:
			if r.err != nil || r.rec.Version != ver {
				return r.rec, r.err
			}
		case <-ctx.Done():
			return store.Record{}, context.Cause(ctx)
		case <-s.closing:
			return store.Record{}, store.ErrClosed
		}
	}
}
