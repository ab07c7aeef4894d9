package lease_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func newManager(t testing.TB, st store.Store) *lease.Manager {
	t.Helper()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestCheckAndLeftAllocateNothing(t *testing.T) {
	m := newManager(t, memory.New(memory.Options{}))
	own, err := m.Acquire(t.Context(), "own")
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Acquire(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]func() error{"lease": own.Check, "lease of a session": kept.Check, "session": s.Check} {
		if n := testing.AllocsPerRun(1000, func() { _ = check() }); n != 0 {
			t.Errorf("Check of a %s allocates %v times", name, n)
		}
		if err := check(); err != nil {
			t.Error(err)
		}
	}
	for name, left := range map[string]func() time.Duration{"lease": own.Left, "lease of a session": kept.Left, "session": s.Left} {
		if n := testing.AllocsPerRun(1000, func() { _ = left() }); n != 0 {
			t.Errorf("Left of a %s allocates %v times", name, n)
		}
	}
}

// sieve is a store that keeps nothing, so that what a session's leases cost is not mixed up with what a store costs. Each
// answer has strings of its own, as one that came over a network.
type sieve struct {
	store.Store
	past []store.Term // of every record that is read
}

func (s sieve) Get(_ context.Context, key string) (store.Record, error) {
	return own(store.Record{Key: key, Version: "1", Token: 1, Past: s.past}), nil
}

func (s sieve) Put(_ context.Context, rec store.Record) (store.Record, error) {
	rec.Version = "12345678"
	return own(rec), nil
}

// List answers a look at many leases, on a machine that is so slow.
func (sieve) List(context.Context, string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, store.ErrClosed) }
}

func own(rec store.Record) store.Record {
	rec = rec.Clone()
	for _, s := range []*string{&rec.Key, &rec.Owner, &rec.Session, &rec.Nonce, &rec.Version} {
		*s = strings.Clone(*s)
	}
	for i := range rec.Past {
		rec.Past[i].Owner, rec.Past[i].Why = strings.Clone(rec.Past[i].Owner), strings.Clone(rec.Past[i].Why)
	}
	return rec
}

// A lease of a session costs under 1 KiB.
func TestSessionLeaseMemory(t *testing.T) {
	full := make([]store.Term, store.MaxPast)
	for i := range full {
		full[i] = store.Term{Owner: "host-name/123456/0123456789abc", Token: 1, From: time.Now(), Until: time.Now(), Why: "released"}
	}
	for name, past := range map[string][]store.Term{"new names": nil, "names with a history": full} {
		t.Run(name, func(t *testing.T) {
			const leases = 5_000
			m := newManager(t, sieve{past: past})
			s, err := m.OpenSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			for i := range leases {
				if _, err := s.Acquire(t.Context(), fmt.Sprintf("shard/%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			per := (heap() - before) / leases
			t.Logf("%d bytes a lease", per)
			if per >= 1<<10 {
				t.Errorf("%d bytes a lease, want under 1 KiB", per)
			}
			runtime.KeepAlive(s)
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What a manager remembers of names that it doesn't hold is bounded.
func TestMemoryOfNamesIsBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, direct := w.Node(lease.Options{}), w.DB.Open()
		for i := range lease.MaxMemory + 100 {
			key := fmt.Sprint("name/", i)
			if _, err := direct.Put(t.Context(), store.Record{Key: key, Owner: "other", Token: 1, TTL: ttl}); err != nil {
				t.Fatal(err)
			}
			if _, err := n.TryAcquire(t.Context(), key); err == nil {
				t.Fatalf("%s: acquired", key)
			}
		}
		if got := n.Remembered(); got != lease.MaxMemory {
			t.Errorf("%d names are remembered", got)
		}
	})
}
