package lease_test

import (
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// Who has read the record of a name that others had before begins with no write that is refused.
func TestNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		manager := func() (*lease.Manager, *faulty.Store) {
			st := faulty.Wrap(db.Open(), nil)
			m, err := lease.NewManager(st, lease.Options{Clock: clocktest.New(0)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				_ = st.Close()
			})
			return m, st
		}
		first, _ := manager()
		l, err := first.TryAcquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, st := manager()
		for _, name := range []string{"a", "none"} {
			rec, err := store.Load(t.Context(), st, name)
			if err != nil {
				t.Fatal(err)
			}
			m.Notice(rec)
			before := st.Count(faulty.Put)
			l, err := m.TryAcquire(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if n := st.Count(faulty.Put) - before; n != 1 {
				t.Errorf("%s: %d writes", name, n)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
