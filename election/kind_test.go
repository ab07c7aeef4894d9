package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Nobody takes an election's name as a lease, not between two terms either, while there are candidates; and nobody stands for election
// to a name that is held as a lease. What nobody uses may become the other.
func TestFinding_S1_ElectionsAndLeasesKeepOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, err := lease.NewManager(w.DB.Open(), lease.Options{TTL: ttl, Clock: clocktest.New(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		a := w.candidate("a", election.Options{})
		time.Sleep(ttl)
		refused := func(when string) {
			t.Helper()
			other := new(store.KindError)
			if _, err := m.TryAcquire(t.Context(), "job"); !errors.As(err, &other) || other.Kind != store.KindElection || other.Wanted != store.KindLease {
				t.Errorf("%s: %v", when, err)
			}
		}
		refused("while one leads")
		rec := func() store.Record {
			rec, err := w.st.Get(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			return rec
		}
		leader := rec()
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * ttl)
		if rec().Owner != "" {
			t.Fatal("it was not paused")
		}
		refused("while nobody leads")
		a.stop(nil)
		<-a.done
		l, err := m.TryAcquire(t.Context(), "job")
		if err != nil || l.Token() <= leader.Token {
			t.Fatalf("without candidates: %v, %v, after %d", l, err, leader.Token)
		}
		if err := election.Resume(t.Context(), w.st, "job", ""); err != nil {
			t.Fatal(err)
		}
		err = election.Run(t.Context(), m, "job", election.Callbacks{OnStartedLeading: func(context.Context, election.Term) {}}, election.Options{})
		if other := new(store.KindError); !errors.As(err, &other) || other.Holder != m.Holder() {
			t.Errorf("a candidate for what is held: %v", err)
		}
	})
}
