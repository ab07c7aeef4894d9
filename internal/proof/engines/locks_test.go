package engines

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/sim/locks"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

// How long sessions are: of processes that die, in a test that is made again where the machine stalled, and in one that isn't; and of
// those that are to outlive a server that is busy, and a machine that stalls.
const (
	lockTTL = 3 * time.Second
	deadTTL = 15 * time.Second
	calmTTL = time.Minute
)

// TestLocks has the locks of package lock used on each engine: what their users see is what a lock shows, waiters are served
// in their order, and who dies loses its share.
func TestLocks(t *testing.T) {
	onEach(t, tryLocks)
}

// holder is a process that uses locks.
type holder struct {
	*lease.Session
	m *lease.Manager
}

func tryLocks(t *testing.T, open func(t testing.TB) store.Store) {
	all := fourHolders(t, open, calmTTL)
	t.Run("semaphore", func(t *testing.T) {
		contend(t, all, locks.Semaphore(3), func(h holder, n int) (acquire, int) {
			weight := 1 + n%3
			sem, err := lock.NewSemaphore(h.Session, "licences", lock.SemaphoreOptions{Limit: 3, Fair: n%2 == 0})
			must(t, err)
			return func(ctx context.Context) (*lock.Hold, error) { return sem.Acquire(ctx, weight) }, weight
		})
	})
	t.Run("read-write lock", func(t *testing.T) {
		contend(t, all, locks.RWMutex(), func(h holder, n int) (acquire, int) {
			rw, err := lock.NewRWMutex(h.Session, "config")
			must(t, err)
			if n%3 == 0 {
				return rw.Lock, locks.Writer
			}
			return rw.RLock, 1
		})
	})
	t.Run("mutex", func(t *testing.T) {
		contend(t, all, locks.Semaphore(1), func(h holder, n int) (acquire, int) {
			m, err := lock.NewMutex(h.Session, "mutex", lock.MutexOptions{Fair: n%2 == 0})
			must(t, err)
			return m.Lock, 1
		})
	})
	t.Run("several names", func(t *testing.T) {
		contend(t, all, locks.Semaphore(1), func(h holder, n int) (acquire, int) {
			names := []string{"a", "b", "c"}
			if n%2 == 0 {
				slices.Reverse(names)
			}
			return func(ctx context.Context) (*lock.Hold, error) {
				set, err := lock.AcquireAll(ctx, h.Session, names...)
				if err != nil {
					return nil, err
				}
				return set.Hold, nil
			}, 1
		})
	})
	t.Run("turns, and a death", func(t *testing.T) {
		stalltest.Run(t, func(t testing.TB) { queue(t, fourHolders(t, open, lockTTL)) })
	})
}

func fourHolders(t testing.TB, open func(t testing.TB) store.Store, ttl time.Duration) (all []holder) {
	t.Helper()
	for range 4 {
		m, err := lease.NewManager(open(t), lease.Options{TTL: ttl})
		must(t, err)
		t.Cleanup(func() { m.Close() })
		s, err := m.OpenSession(t.Context())
		must(t, err)
		all = append(all, holder{s, m})
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type acquire func(ctx context.Context) (*lock.Hold, error)

// contend has each process use a lock some times, and checks what they saw.
func contend(t *testing.T, all []holder, h *locks.History, use func(p holder, n int) (acquire, int)) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() {
			for n := range 5 {
				lock, weight := use(p, i+n)
				call := h.Call(i, weight)
				held, err := lock(ctx)
				if err != nil {
					t.Error(err)
					call.GivenUp()
					return
				}
				share := call.Granted(held.Token(), held.Slot())
				time.Sleep(2 * time.Millisecond)
				if err := held.Check(); err != nil {
					t.Errorf("lost while all was well: %v", err)
				}
				share.End()
				if err := held.Release(ctx); err != nil {
					t.Error(err)
					return
				}
				share.Freed()
			}
		})
	}
	wg.Wait()
	if err := h.Check(5 * time.Minute); err != nil {
		t.Error(err)
	}
}

// queue has three processes wait in turn for one that dies, the first of which dies, too.
func queue(t testing.TB, all []holder) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	name := "turn/" + all[0].Key() // of this attempt
	turn := func(p holder) (*lock.Hold, error) {
		m, err := lock.NewMutex(p.Session, name, lock.MutexOptions{Fair: true})
		must(t, err)
		return m.Lock(ctx)
	}
	first, err := turn(all[0])
	must(t, err)
	var mu sync.Mutex
	var served []string
	var wg sync.WaitGroup
	for i, p := range all[1:] {
		wg.Go(func() {
			h, err := turn(p)
			if i == 0 {
				if err == nil {
					t.Error("who is dead was served")
				}
				return
			}
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
				return
			}
			mu.Lock()
			served = append(served, fmt.Sprint(i))
			mu.Unlock()
			if h.Token() <= first.Token() {
				t.Errorf("token %d after %d", h.Token(), first.Token())
			}
			if err := h.Release(ctx); err != nil {
				t.Error(err)
			}
		})
		for { // until it stands in the queue
			s, err := lock.Read(ctx, all[3].m.Store(), name)
			must(t, err)
			if len(s.Waiting) == i+1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	died := time.Now()
	all[0].m.Close() // without a release: nobody renews any more
	all[1].m.Close()
	wg.Wait()
	took := time.Since(died)
	t.Logf("two dead ones were noticed after %v", took.Round(time.Millisecond))
	// A TTL and a third of it, as lock promises, on a machine that may be busy.
	if !slices.Equal(served, []string{"1", "2"}) || took > 2*lockTTL {
		t.Errorf("served after %v: %v", took, served)
	}
}
