package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// What one observer has seen, another with the same sightings continues, and so does a try to take the name. What a manager holds itself
// is no sighting.
func TestObserversShareSightings(t *testing.T) {
	inSight(t, func(t *testing.T, _ *lease.Observer, st store.Store, write func(string, func(*store.Record))) {
		clk, book := clocktest.New(0), sightings.New(t.TempDir(), "store")
		write("job", alive("n1"))
		observe := func() *lease.Observer {
			return lease.NewObserver(st, lease.ObserverOptions{Clock: clk, Sightings: book})
		}
		stands(t, observe(), lease.NameHeld, 0, ttl)
		time.Sleep(ttl - time.Second)
		stands(t, observe(), lease.NameHeld, ttl-time.Second, time.Second)
		time.Sleep(2 * time.Second)
		stands(t, observe(), lease.NameExpired, ttl+time.Second, 0)
		m, err := lease.NewManager(st, lease.Options{TTL: ttl, Clock: clk, Sightings: book})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		if _, err := m.TryAcquire(t.Context(), "job"); err != nil {
			t.Errorf("the name has expired: %v", err)
		}
		if _, err := m.TryAcquire(t.Context(), "job"); err == nil {
			t.Error("taken twice")
		}
		if rec, _, known := book.Recall("job", clk.Now()); known {
			t.Errorf("the manager's own hold is a sighting: %+v", rec)
		}
	})
}

// A holder is silent when it has shown no sign of life for more than half of its TTL.
func TestSilentFor(t *testing.T) {
	inSight(t, func(t *testing.T, o *lease.Observer, _ store.Store, write func(string, func(*store.Record))) {
		write("job", alive("n1"))
		stands(t, o, lease.NameHeld, 0, ttl)
		time.Sleep(ttl / 2)
		if silent := o.Known("job").SilentFor(); silent != 0 {
			t.Errorf("silent for %v after half of the TTL", silent)
		}
		time.Sleep(time.Millisecond)
		if silent := o.Known("job").SilentFor(); silent != ttl/2+time.Millisecond {
			t.Errorf("silent for %v after more than half of the TTL", silent)
		}
	})
}

// Watch tells that a name has another holder, also when somebody has written that under the same token; and nothing once its context is done.
func TestWatchTellsOfAnotherHolder(t *testing.T) {
	inSight(t, func(t *testing.T, _ *lease.Observer, st store.Store, write func(string, func(*store.Record))) {
		write("job", alive("n1"))
		ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
		defer cancel()
		over := faulty.Wrap(st, func(op faulty.Op) faulty.Fault { return faulty.Fault{Err: ctx.Err()} })
		go func() {
			time.Sleep(time.Second)
			write("job", func(rec *store.Record) { rec.Owner, rec.Nonce = "other", "n2" })
			time.Sleep(ttl/2 - 2*time.Second)
			over.SetPlan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Get {
					cancel() // while it reads
				}
				return faulty.Fault{}
			})
			write("job", func(rec *store.Record) { rec.Owner, rec.Nonce = "third", "n3" })
		}()
		var holders []string
		for s, err := range lease.Watch(ctx, over, "job", lease.ObserverOptions{Clock: clocktest.New(0)}) {
			if err != nil {
				t.Errorf("%+v, %v", s, err)
			}
			holders = append(holders, s.Holder)
		}
		if len(holders) != 2 || holders[0] != "holder" || holders[1] != "other" {
			t.Errorf("%v, want holder, other", holders)
		}
	})
}
