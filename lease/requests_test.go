package lease_test

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// dear is a store where a refusal costs more than a read.
type dear struct{ store.Store }

func (dear) Properties() store.Properties { return store.Properties{Engine: "dear"} }

// What each operation costs in requests: one write each where a refused write is as cheap as a read, or the last state is
// remembered; elsewhere a new name is read first. A name whose record is not known to say what it is costs one read more, once: a
// version that knew no kinds kept shares beside it.
func TestRequestsOfEachOperation(t *testing.T) {
	for name, c := range map[string]struct {
		wrap      func(store.Store) store.Store
		readFirst int
	}{
		"refusals are cheap": {func(st store.Store) store.Store { return st }, 0},
		"refusals are dear":  {func(st store.Store) store.Store { return dear{st} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			db := memory.NewDB(memory.Options{})
			net := faulty.Wrap(db.Open(), nil)
			m := newManager(t, c.wrap(net))
			other := newManager(t, db.Open())
			var l *lease.Lease
			acquire := func(ctx context.Context) (err error) { l, err = m.TryAcquire(ctx, "n"); return err }
			for _, step := range []struct {
				what         string
				do           func(ctx context.Context) error
				reads, wants int
			}{
				{"acquire a new name", acquire, c.readFirst + 1, 1},
				{"release", func(ctx context.Context) error { return l.Release(ctx) }, 0, 1},
				{"acquire a remembered name", acquire, 0, 1},
				{"release again", func(ctx context.Context) error { return l.Release(ctx) }, 0, 1},
				{"try a name that another holds", func(ctx context.Context) error {
					if _, err := other.Acquire(ctx, "taken"); err != nil {
						return err
					}
					if _, err := m.TryAcquire(ctx, "taken"); err == nil {
						t.Error("acquired")
					}
					return nil
				}, 1, 1 - c.readFirst},
			} {
				gets, puts := net.Count(faulty.Get), net.Count(faulty.Put)
				if err := step.do(t.Context()); err != nil {
					t.Fatalf("%s: %v", step.what, err)
				}
				if gets, puts = net.Count(faulty.Get)-gets, net.Count(faulty.Put)-puts; gets != step.reads || puts != step.wants {
					t.Errorf("%s: %d reads and %d writes, want %d and %d", step.what, gets, puts, step.reads, step.wants)
				}
			}
		})
	}
}
