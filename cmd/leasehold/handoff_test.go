package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// A script gives the order again after 75, whatever kept the candidate from leading.
func TestFinding_K6_AHandOverThatAnotherWonIsTriedAgain(t *testing.T) {
	st := memory.New(memory.Options{})
	defer func() { _ = st.Close() }()
	won := store.Record{Key: "job", Owner: "third/1", Token: 8, TTL: time.Minute}
	if _, err := st.Put(t.Context(), won); err != nil {
		t.Fatal(err)
	}
	a := &app{err: os.Stderr, clk: clock.System()}
	h, before := handoff{name: "job", to: "second", wait: patienceOfTests}, view{Lease: api.Lease{Token: 7, Holder: "first/1"}}
	leads, err := a.awaitTerm(t.Context(), st, h, before, "second/1")
	if exit := new(exitError); !errors.As(err, &exit) || exit.code != exitConflict || leads.Owner != won.Owner {
		t.Errorf("%+v, %v", leads, err)
	}
	if leads, err = a.awaitTerm(t.Context(), st, h, before, won.Owner); err != nil || leads.Token != won.Token {
		t.Errorf("%+v, %v", leads, err)
	}
}
