package dynamodb

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A request whose connection was closed may be carried out much later. Were a creation sent a second time meanwhile, and done, and its
// record deleted, the first copy would find no row, as its condition demands, and bring the record back in the version that it had.
func TestALateCreationBringsNothingBack(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	f.do(fault{op: "PutItem", late: true})
	rec, err := s.Put(t.Context(), held("k", 1))
	switch {
	case err == nil:
		if err := s.Delete(t.Context(), "k", rec.Version); err != nil {
			t.Fatal(err)
		}
		f.arrive(t)
		if back, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the record was created in version %s and deleted, and came back in version %s: %v", rec.Version, back.Version, err)
		}
		return
	case !errors.Is(err, store.ErrUnknownOutcome):
		t.Errorf("%v, want an unknown outcome", err)
	}
	if n := f.requests("PutItem"); n != 1 {
		t.Errorf("%d copies were sent, want 1", n)
	}
	if f.arrive(t) != 1 {
		t.Error("the late request was not carried out: nothing was tried")
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Nonce != held("k", 1).Nonce {
		t.Errorf("%+v, %v, want what the late request wrote", got, err)
	}
}

// It takes no late copy: one that was carried out, though its reply was lost, may be deleted before a second one is sent. In TestFaults
// of internal/proof/engines a creation came twice in this way, in one version.
func TestADeletedCreationIsNotMadeAgain(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	other := testOpen(t, testClient(t, f.target), table, Options{})
	f.do(fault{op: "PutItem", lose: true, after: func() {
		rec, err := other.Get(t.Context(), "k")
		if err == nil {
			err = other.Delete(t.Context(), "k", rec.Version)
		}
		if err != nil {
			t.Error(err)
		}
	}})
	if _, err := s.Put(t.Context(), held("k", 1)); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v, want an unknown outcome", err)
	}
	if back, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the record was created and deleted, and is there again: %+v, %v", back, err)
	}
}

// What demands a version is sent again: a late copy finds another version.
func TestALateUpdateDoesNothing(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	rec := mustPut(t, s, held("k", 1))
	f.do(fault{op: "PutItem", late: true})
	next := held("k", 2)
	next.Version = rec.Version
	next = mustPut(t, s, next)
	if f.requests("PutItem") != 2 {
		t.Errorf("%d copies were sent, want 2", f.requests("PutItem"))
	}
	if err := s.Delete(t.Context(), "k", next.Version); err != nil {
		t.Fatal(err)
	}
	if f.arrive(t) != 0 {
		t.Error("the late copy was carried out")
	}
	if back, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%+v, %v, want nothing", back, err)
	}
}
