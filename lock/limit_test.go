package lock

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Who waits follows a limit that is set, and so does who comes with another number.
func TestFinding_K4_WaitersFollowALimitThatIsSet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		for range 2 {
			h, err := semaphore(t, p.Session, 2, false).Acquire(t.Context(), 1)
			must(t, h, err)
		}
		granted := make(chan error, 1)
		go func() {
			_, err := semaphore(t, q.Session, 2, false).Acquire(t.Context(), 1)
			granted <- err
		}()
		synctest.Wait()
		if err := SetLimit(t.Context(), p.Manager(), "licences", 3); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Errorf("a waiter that names the limit of before: %v", err)
		}
		if _, err := semaphore(t, q.Session, 2, false).TryAcquire(t.Context(), 1); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("with the number of before, where 3 of 3 are held: %v", err)
		}
		if err := SetLimit(t.Context(), p.Manager(), "licences", 5); err != nil {
			t.Fatal(err)
		}
		h, err := semaphore(t, q.Session, 10, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		if _, err := semaphore(t, q.Session, 10, false).Acquire(t.Context(), 6); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "limit is 5, not 10") {
			t.Errorf("a weight above the limit that is set: %v", err)
		}
	})
}

// A weight that is the whole limit fits it, whatever limit its caller names.
func TestAWeightOfTheWholeLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		if err := SetLimit(t.Context(), p.Manager(), "licences", 5); err != nil {
			t.Fatal(err)
		}
		h, err := semaphore(t, p.Session, 10, false).Acquire(t.Context(), 5)
		must(t, h, err)
	})
}

// A waiter whose weight no longer fits the limit that is set could wait for ever.
func TestLimitBelowAWaiter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 3, false).Acquire(t.Context(), 1)
		must(t, h, err)
		ended := make(chan error, 1)
		go func() {
			_, err := semaphore(t, q.Session, 3, false).Acquire(t.Context(), 3)
			ended <- err
		}()
		synctest.Wait()
		if err := SetLimit(t.Context(), p.Manager(), "licences", 2); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, ErrMismatch) {
			t.Errorf("weight 3 of 2: %v", err)
		}
	})
}

// A name that nobody uses is what its next use says, under a higher token; one that is in use is left alone.
func TestFinding_K4_Forget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		if err := Forget(t.Context(), p.Manager(), "licences"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a name that isn't stored: %v", err)
		}
		if err := SetLimit(t.Context(), p.Manager(), "licences", 5); err != nil {
			t.Fatal(err)
		}
		h, err := semaphore(t, p.Session, 5, false).Acquire(t.Context(), 5)
		must(t, h, err)
		used := new(store.KindError)
		if err := Forget(t.Context(), q.Manager(), "licences"); !errors.As(err, &used) || used.Kind != store.KindSemaphore || len(used.Members) != 1 {
			t.Errorf("a name with a holder: %v", err)
		}
		before := w.Get("licences")
		p.Cut()
		time.Sleep(3 * ttl)
		if w.Ageless { // each call looks for the first time; a waiter takes who has died off the roster
			h, err := semaphore(t, q.Session, 5, false).Acquire(t.Context(), 1)
			if must(t, h, err); h.Release(t.Context()) != nil {
				t.Fatal("not released")
			}
			before = w.Get("licences")
		}
		err = Forget(t.Context(), q.Manager(), "licences")
		after := w.Get("licences")
		if err != nil || after.Kind != "" || after.Data != nil || after.Token != before.Token {
			t.Fatalf("%v, of %+v: %+v", err, before, after)
		}
		if err := Forget(t.Context(), q.Manager(), "licences"); err != nil || w.Get("licences").Version != after.Version {
			t.Errorf("again: %v", err)
		}
		h, err = semaphore(t, q.Session, 2, false).TryAcquire(t.Context(), 2)
		if must(t, h, err); h.Token() <= before.Token {
			t.Errorf("token %d after %d", h.Token(), before.Token)
		}
		alone, err := q.TryAcquire(t.Context(), "alone")
		if err != nil {
			t.Fatal(err)
		}
		if err := Forget(t.Context(), q.Manager(), "alone"); !errors.As(err, &used) || used.Holder == "" {
			t.Errorf("a name that is held: %v", err)
		}
		if err := alone.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := Forget(t.Context(), q.Manager(), "alone"); err != nil {
			t.Error(err)
		}
		for name, kind := range map[string]store.Kind{"led": store.KindElection, "pool": store.KindPool} {
			w.Put(store.Record{Key: name, Kind: kind, Token: 7, Nonce: "n"})
		}
		if err := Forget(t.Context(), q.Manager(), "led"); err != nil || w.Get("led").Kind != "" || w.Get("led").Token != 7 {
			t.Errorf("an election that nobody stands for: %v", err)
		}
		if err := Forget(t.Context(), q.Manager(), "pool"); !errors.As(err, &used) || used.Kind != store.KindPool {
			t.Errorf("a pool: %v", err)
		}
	})
}
