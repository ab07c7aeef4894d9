package lease_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// Who has a share of a name keeps it from those who want it as a lease, for as long as its session lives. When all sessions are over, the
// name is a lease's.
func TestMembersKeepANameWhileTheirSessionsLive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members, n := w.Node(lease.Options{}), w.Node(lease.Options{})
		a, b := members.Open(), members.Open()
		held := fmt.Sprintf(`{"v":1,"kind":"semaphore","held":[{"session":%q},{"session":%q}]}`, a.Key(), b.Key())
		rec := store.Record{Key: "job", Kind: store.KindSemaphore, Token: 7, Data: []byte(held), Nonce: "n"}
		if _, err := w.DB.Open().Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		refused := func(when string) {
			t.Helper()
			other := new(store.KindError)
			if _, err := n.TryAcquire(t.Context(), "job"); !errors.As(err, &other) || other.Kind != store.KindSemaphore {
				t.Errorf("%s: %v", when, err)
			}
		}
		time.Sleep(10 * ttl)
		refused("both live")
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		refused("one lives")
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.Plan(leasetest.Once(faulty.Fault{Err: errRefused}, func(op faulty.Op) bool { return op.Key == b.Key() }))
		refused("none lives, and nobody knows")
		if l, err := n.TryAcquire(t.Context(), "job"); err != nil || l.Token() <= 7 {
			t.Errorf("none lives: %v, %v", l, err)
		}
	})
}

// A try of a name that is to be a pool's value doesn't wait for its holder.
func TestTryAsDoesNotWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "value", wanted.As(store.KindPool)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "value", wanted.As(store.KindPool))
		if !errors.Is(err, lease.ErrHeld) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
