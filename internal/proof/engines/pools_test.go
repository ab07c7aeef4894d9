package engines

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// kindsOfLock are the ways to lock the name x.
var kindsOfLock = map[string]func(ctx context.Context, s *lease.Session) (*lock.Hold, error){
	"mutex": func(ctx context.Context, s *lease.Session) (*lock.Hold, error) {
		m, err := lock.NewMutex(s, "x", lock.MutexOptions{})
		return tried(err, func() (*lock.Hold, error) { return m.TryLock(ctx) })
	},
	"fair mutex": func(ctx context.Context, s *lease.Session) (*lock.Hold, error) {
		m, err := lock.NewMutex(s, "x", lock.MutexOptions{Fair: true})
		return tried(err, func() (*lock.Hold, error) { return m.TryLock(ctx) })
	},
	"reader": func(ctx context.Context, s *lease.Session) (*lock.Hold, error) {
		rw, err := lock.NewRWMutex(s, "x")
		return tried(err, func() (*lock.Hold, error) { return rw.BesideLeases().TryRLock(ctx) })
	},
	"writer": func(ctx context.Context, s *lease.Session) (*lock.Hold, error) {
		rw, err := lock.NewRWMutex(s, "x")
		return tried(err, func() (*lock.Hold, error) { return rw.TryLock(ctx) })
	},
	"semaphore": func(ctx context.Context, s *lease.Session) (*lock.Hold, error) {
		sem, err := lock.NewSemaphore(s, "x", lock.SemaphoreOptions{Limit: 2})
		return tried(err, func() (*lock.Hold, error) { return sem.TryAcquire(ctx, 1) })
	},
}

func tried(err error, try func() (*lock.Hold, error)) (*lock.Hold, error) {
	if err != nil {
		return nil, err
	}
	return try()
}

// A pool and a lock keep out of each other's name, as a pool and a lease do.
func TestFinding_S1_PoolsAndLocksKeepOut(t *testing.T) {
	for name, try := range kindsOfLock {
		t.Run(name, func(t *testing.T) {
			db := memory.NewDB(memory.Options{})
			p, q := sessionOn(t, db), sessionOn(t, db)
			of := identity.Options{Values: identity.Values{Range: "0-9"}}
			held, err := try(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if h, err := identity.Claim(t.Context(), q, "x", of); !errors.Is(err, store.ErrKind) {
				t.Fatalf("a pool of a name that is locked: %v, %v", h, err)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			value, err := identity.Claim(t.Context(), q, "x", of)
			if err != nil {
				t.Fatal(err)
			}
			other := new(store.KindError)
			if h, err := try(t.Context(), p); !errors.As(err, &other) || other.Kind != store.KindPool {
				t.Errorf("a lock of a pool's name: %v, %v", h, err)
			}
			if err := value.Release(t.Context(), value.Floor()); err != nil {
				t.Fatal(err)
			}
			if h, err := try(t.Context(), p); !errors.Is(err, store.ErrKind) {
				t.Errorf("a lock of the name of a pool whose values are free: %v, %v", h, err)
			}
		})
	}
}

// sessionOn opens a session of a process of its own.
func sessionOn(t *testing.T, db *memory.DB) *lease.Session {
	t.Helper()
	m, err := lease.NewManager(db.Open(), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), m.Store().Close()); err != nil {
			t.Error(err)
		}
	})
	s, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
