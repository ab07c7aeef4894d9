package lease_test

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// A session that ends after the claim has been answered, and before the session knows of the lease, ends the lease all the same: its
// holder would otherwise wait for a context that nobody cancels.
func TestFinding_S12_ASessionEndsBeforeItKnowsOfTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var s *lease.Session
		n := w.node(lease.Options{OnEvent: func(e lease.Event) {
			if e.Key == "a" && e.State == lease.StateHeld {
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}})
		s = n.open()
		l, err := s.Acquire(t.Context(), "a")
		if err == nil {
			t.Errorf("acquired under a session that is over; its context: %v", l.Context().Err())
		} else if lost, ok := errors.AsType[*lease.LostError](err); !ok || lost.Cause != lease.CauseReleased {
			t.Errorf("Acquire: %v, want the session's end", err)
		}
		if _, err := w.node(lease.Options{}).TryAcquire(t.Context(), "a"); err != nil {
			t.Errorf("the name afterwards: %v", err)
		}
	})
}

// A session that an operator has broken keeps nothing: an online guard refuses the terms of its leases at once.
func TestFinding_S12_ABrokenSessionIsNotLive(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	m := newManager(t, db.Open())
	guard, err := fence.NewOnline(lease.Source(db.Open()), fence.OnlineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Check(t.Context(), l.Sequencer()); err != nil {
		t.Fatal(err)
	}
	session, err := db.Open().Get(t.Context(), s.Key())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newManager(t, db.Open()).Break(t.Context(), s.Key(), lease.EndTerm{By: "ada", Token: session.Token}); err != nil {
		t.Fatal(err)
	}
	if err := guard.Check(t.Context(), l.Sequencer()); !errors.Is(err, fence.ErrStale) {
		t.Errorf("its session was broken: %v", err)
	}
}
