package lease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestPitfall_P12_IdenticalProcessesAreTwoHolders(t *testing.T) {
	t.Run("one host, one pid, one name", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.Node(lease.Options{Name: "billing"}), w.Node(lease.Options{Name: "billing"})
			if a.Holder() == b.Holder() || !strings.HasPrefix(a.Holder(), "billing/") {
				t.Errorf("owners %s and %s", a.Holder(), b.Holder())
			}
		})
	})
	t.Run("clones", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
			b.SetOwner(a.Holder())
			l := a.Take("job")
			if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("a clone of the holder: %v", err)
			}
			s := a.Open()
			kept := a.Under(s, "kept")
			if _, err := b.TryAcquire(t.Context(), "kept"); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("a clone of the session's process: %v", err)
			}
			if other := b.Open(); other.Key() == s.Key() {
				t.Errorf("two sessions under %s", s.Key())
			}
			wait := b.Acquiring(t.Context(), "job")
			time.Sleep(time.Minute)
			wait.Pending(t)
			valid(t, l)
			valid(t, kept)
			release(t, l)
			rises(t, "released", l, wait.Wait(t, time.Now(), 0))
		})
	})
	t.Run("clones that gave up the same term", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
			b.SetOwner(a.Holder())
			l := a.Take("job")
			a.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errRefused} })
			if err := l.Release(t.Context()); !errors.Is(err, errRefused) || errors.Is(err, store.ErrUnknownOutcome) {
				t.Fatalf("Release: %v", err)
			}
			a.Plan(nil)
			b.Adopt(a.Manager) // the machine is copied with what it remembers
			first := a.Take("job")
			if _, err := b.TryAcquire(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("the clone, once the term was retaken: %v", err)
			}
			time.Sleep(time.Minute)
			valid(t, first)
		})
	})
}
