package lock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A hundred shares of a semaphore are held at a time, and a hundredth place is nobody's in particular.
func TestASemaphoreHasAllItsPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sem := semaphore(t, w.process(nil).Session, MaxShares, false)
		for range MaxShares {
			h, err := sem.TryAcquire(t.Context(), 1)
			must(t, h, err)
		}
		if h, err := sem.TryAcquire(t.Context(), 1); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("one more: %v, %v", h, err)
		}
	})
}

// Who is first in a full line is served though the roster has no place left: it has its own.
func TestTheFirstOfAFullLineIsServed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		held, err := semaphore(t, p.Session, 2, true).Acquire(t.Context(), 1)
		must(t, held, err)
		granted := make(chan error, 1)
		go func() {
			_, err := semaphore(t, q.Session, 2, true).Acquire(t.Context(), 2)
			granted <- err
		}()
		synctest.Wait()
		w.edit("licences", func(rec *store.Record) {
			r, err := roster.Parse(*rec)
			for i := range MaxShares - 2 {
				r.Queue = append(r.Queue, roster.Entry{ID: fmt.Sprint(i), Session: p.Key(), Weight: 1})
			}
			if err := errors.Join(err, r.Write(rec)); err != nil {
				t.Fatal(err)
			}
		})
		if err := SetLimit(t.Context(), p.Manager(), "licences", 3); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Error(err)
		}
		if state, err := roster.StateOf(w.Get("licences")); err != nil || len(state.Held) != 2 || len(state.Waiting) != MaxShares-2 {
			t.Errorf("%d hold, %d wait, %v: want the first to be served while all others wait", len(state.Held), len(state.Waiting), err)
		}
	})
}

// Who has the last share is told so without a look at anybody, itself included.
func TestWhoHasAShareLooksAtNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		p.Plan(on(faulty.Get, p.Key(), faulty.Fault{Err: errRefused}))
		h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
	})
}

// A holder who is in nobody's way isn't looked at: its session's record may be out of reach.
func TestWhoIsInNobodysWayIsNotLookedAt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		q := w.process(on(faulty.Get, p.Key(), faulty.Fault{Err: errRefused}))
		h, err := semaphore(t, p.Session, 2, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		sem := semaphore(t, q.Session, 2, false)
		h, err = sem.TryAcquire(t.Context(), 1)
		must(t, h, err)
		if h, err := sem.TryAcquire(t.Context(), 1); !errors.Is(err, errRefused) {
			t.Errorf("one that is in the way: %v, %v", h, err)
		}
	})
}

// Who is first in line looks at all holders: behind one that lives, another may have died.
func TestADeadHolderBehindALiveOne(t *testing.T) {
	for _, fair := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			live, dead, q := w.process(nil), w.process(nil), w.process(nil)
			for _, p := range []*process{live, dead} {
				h, err := semaphore(t, p.Session, 2, fair).TryAcquire(t.Context(), 1)
				must(t, h, err)
			}
			got := make(chan time.Time, 1)
			go func() {
				if _, err := semaphore(t, q.Session, 2, fair).Acquire(t.Context(), 1); err != nil {
					t.Error(err)
				}
				got <- time.Now()
			}()
			time.Sleep(ttl)
			died := time.Now()
			dead.Cut()
			select {
			case at := <-got:
				if took := at.Sub(died); took > ttl*4/3+time.Second {
					t.Errorf("fair=%t: served after %v", fair, took)
				}
			case <-time.After(3 * ttl):
				t.Fatalf("fair=%t: not served in 3 TTLs", fair)
			}
		})
	}
}

// A wait that is over writes nothing, since it wrote nothing before.
func TestAWaitThatIsOverWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var writes atomic.Int64
		p := w.process(nil)
		q := w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && (op.Key == "" || op.Key == "licences") {
				writes.Add(1)
			}
			return faulty.Fault{}
		})
		h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
		defer cancel()
		if h, err := semaphore(t, q.Session, 1, false).Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, %v", h, err)
		}
		time.Sleep(ttl)
		if n := writes.Load(); n > 0 {
			t.Errorf("%d writes", n)
		}
	})
}

// A wait that ends with its session says that the session ended, and not that somebody holds the lock.
func TestAWaitEndsWithItsSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		ended := make(chan error, 1)
		go func() {
			_, err := semaphore(t, q.Session, 1, false).Acquire(t.Context(), 1)
			ended <- err
		}()
		synctest.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || errors.Is(err, lease.ErrHeld) {
			t.Error(err)
		}
	})
}

// A limit that is set to what it is already counts as set: who names another one follows it.
func TestALimitSetToWhatItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		h, err := semaphore(t, p.Session, 2, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		if err := SetLimit(t.Context(), p.Manager(), "licences", 2); err != nil {
			t.Fatal(err)
		}
		h, err = semaphore(t, p.Session, 10, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
	})
}

// Who wants a share of a name that a dead process holds alone, and looks once, tells the next one what it saw.
func TestASightingOfWhoHoldsTheNameAlone(t *testing.T) {
	book := sightings.New(t.TempDir(), "store")
	synctest.Test(t, func(t *testing.T) {
		w := &world{World: leasetest.New(t)}
		w.Ageless = true
		p := w.process(nil)
		if _, err := p.Manager().TryAcquire(t.Context(), "licences"); err != nil {
			t.Fatal(err)
		}
		p.Cut()
		clk := clocktest.New(0) // of one machine
		try := func() error {
			st := faulty.Ageless(w.DB.Open())
			m, err := lease.NewManager(st, lease.Options{TTL: ttl, Clock: clk, Sightings: book})
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.OpenSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = semaphore(t, s, 1, false).TryAcquire(t.Context(), 1)
			if err := errors.Join(m.Close(), st.Close()); err != nil {
				t.Fatal(err)
			}
			return err
		}
		if err := try(); !errors.Is(err, store.ErrKind) {
			t.Fatalf("the first: %v", err)
		}
		time.Sleep(ttl + time.Second)
		if err := try(); err != nil {
			t.Errorf("a TTL later: %v", err)
		}
	})
}
