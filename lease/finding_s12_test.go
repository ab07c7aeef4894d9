package lease_test

import (
	"context"
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
		var d diary
		var s *lease.Session
		closes := 0
		trace := &lease.Trace{Acquire: func(ctx context.Context, a lease.Acquisition) (context.Context, lease.AcquireTrace) {
			return ctx, lease.AcquireTrace{Begins: func(lease.Beginning) (none lease.TermTrace) { // the claim was answered
				if a.Name == "a" {
					closes++
					if err := s.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				return none
			}}
		}}
		n := w.Node(lease.Options{OnEvent: d.note, Trace: trace})
		s = n.Open()
		l, err := s.Acquire(t.Context(), "a")
		if err == nil {
			t.Errorf("acquired under a session that is over; its context: %v", l.Context().Err())
		} else if lost, ok := errors.AsType[*lease.LostError](err); !ok || lost.Cause != lease.CauseReleased {
			t.Errorf("Acquire: %v, want the session's end", err)
		}
		if told := d.of("a"); closes != 1 || !equalStates(told, lease.StateHeld, lease.StateReleased) {
			t.Errorf("told %v", told)
		}
		if _, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "a"); err != nil {
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
