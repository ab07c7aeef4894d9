package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// shared is a store whose records other programs share.
type shared struct {
	store.Store
	refuse atomic.Bool // every touch from now on
}

func (s *shared) Touch(_ context.Context, rec store.Record) (store.Record, error) {
	if s.refuse.Load() {
		return store.Record{}, errors.New("forbidden: patch leases")
	}
	return rec, nil
}

// The touches of a lease fail, and its session's renewals don't: it ends when other programs may take its record, and says why. The
// session, and its leases that were never touched, live on.
func TestFinding_S16_ALeaseWhoseTouchesFailEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		st := &shared{Store: w.db.Open()}
		m, err := lease.NewManager(st, lease.Options{TTL: ttl, Clock: clock.NewFake(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = errors.Join(m.Close(), st.Close()) }()
		s, err := m.OpenSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * ttl)
		if err := l.Check(); err != nil {
			t.Fatalf("while it is touched: %v", err)
		}
		st.refuse.Store(true)
		refused := time.Now()
		<-l.Context().Done()
		if took := time.Since(refused); took > ttl {
			t.Errorf("it ended after %v, want %v at most", took, ttl)
		}
		var lost *lease.LostError
		if err := l.Check(); !errors.As(err, &lost) || lost.Cause != lease.Outage || lost.Err == nil {
			t.Errorf("%v: want the touch that failed", err)
		}
		if err := s.Check(); err != nil {
			t.Errorf("the session: %v", err)
		}
	})
}
