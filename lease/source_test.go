package lease_test

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// An online guard over a store admits the term that is held, and no other.
func TestSource(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	m := newManager(t, db.Open())
	guard, err := fence.NewOnline(lease.Source(db.Open()), fence.OnlineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, s fence.Sequencer, admit bool) {
		t.Helper()
		if err := guard.Check(t.Context(), s); (err == nil) != admit || err != nil && !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", what, err)
		}
	}
	l, err := m.Acquire(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	check("held", l.Sequencer(), true)
	check("by another", fence.Sequencer{Name: "n", Holder: "x", Token: l.Token()}, false)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("released", l.Sequencer(), false)
	again, err := m.Acquire(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	check("the next term", again.Sequencer(), true)
	check("the term before", l.Sequencer(), false)
	if _, err := newManager(t, db.Open()).Break(t.Context(), "n", lease.EndTerm{By: "ada", Token: again.Token()}); err != nil {
		t.Fatal(err)
	}
	check("broken", again.Sequencer(), false)

	s, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Acquire(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	check("kept by a session", kept.Sequencer(), true)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("its session is closed", kept.Sequencer(), false)

	to := newManager(t, db.Open())
	offered, err := m.Acquire(t.Context(), "offered")
	if err != nil {
		t.Fatal(err)
	}
	if err := offered.HandOver(t.Context(), to.Holder()); err != nil {
		t.Fatal(err)
	}
	check("handed over", offered.Sequencer(), false)
}
