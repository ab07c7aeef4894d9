package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/store"
)

func TestAWriteIsInDoubtUntilALaterOneIsDone(t *testing.T) {
	var w Writes
	before := w.Now()
	w.Unknown("k", "n1")
	w.Unknown("k", "")
	w.Unknown("other", "n1")
	if !w.Shows("k", "n1") || !w.Shows("k", "") || w.Shows("k", "n2") || w.Shows("none", "n1") {
		t.Error("what is in doubt isn't what was noted")
	}
	w.Done("k", before) // it was sent before them, and says nothing of them
	if !w.Shows("k", "n1") {
		t.Error("an earlier write settled a later one")
	}
	w.Done("k", w.Now())
	if w.Shows("k", "n1") || w.Shows("k", "") || !w.Shows("other", "n1") {
		t.Error("a later write settled the wrong ones")
	}
	w.Confirmed("other", "n1")
	if w.Shows("other", "n1") || len(w.keys) != 0 || len(w.full) != 0 {
		t.Errorf("remembered: %v, %v", w.keys, w.full)
	}
}

func TestWhatIsTooMuchToRememberIsInDoubt(t *testing.T) {
	var w Writes
	for i := range mostNonces + 2 {
		w.Unknown("k", fmt.Sprint(i))
	}
	if !w.Shows("k", "0") || !w.Shows("k", "another") || w.Shows("other", "0") {
		t.Error("a key with too many writes in doubt isn't in doubt itself")
	}
	w.Done("k", w.Now())
	if w.Shows("k", "0") {
		t.Error("a later write didn't settle the key")
	}
	for i := range mostKeys + 1 {
		w.Unknown(fmt.Sprint(i), "n")
	}
	if !w.Shows("any", "other") || len(w.keys) > mostKeys {
		t.Error("with too many keys in doubt, not all are")
	}
}

// A write is in doubt until each of its copies has its answer. A deletion leaves nothing that could be met.
func TestWritesUnderWay(t *testing.T) {
	var w Writes
	first, second := w.Begin("k", "1", "n"), w.Begin("k", "1", "n")
	gone := w.Begin("k", "1", "")
	if !w.Shows("k", "n") || w.Shows("k", "") || w.Shows("k", "other") || w.Shows("other", "n") {
		t.Error("what is under way isn't what was begun")
	}
	if first(); !w.Shows("k", "n") {
		t.Error("one copy has its answer, and the other doesn't count")
	}
	second()
	gone()
	if w.Shows("k", "n") || len(w.underWay) != 0 {
		t.Errorf("remembered: %v", w.underWay)
	}
}

// A write of which one copy has landed is in no doubt, whatever comes of the others; what begins later is another one.
func TestFinding_L1_ACopyThatHasLanded(t *testing.T) {
	var w Writes
	landed := store.Record{Key: "k", Nonce: "n", Version: "2"}
	first, second := w.Begin("k", "1", "n"), w.Begin("k", "1", "n")
	w.Unknown("k", "n")
	landing := w.Landing("k", "n")
	if landing.Err() != nil || !w.Shows("k", "n") {
		t.Error("it has landed before it was said")
	}
	w.Landed(landed)
	w.Unknown("k", "n")
	first()
	if landing.Err() == nil || w.Landing("k", "n").Err() == nil || w.Shows("k", "n") {
		t.Error("it has landed, and is in doubt")
	}
	if conflict, ok := errors.AsType[*store.ConflictError](context.Cause(landing)); !ok || conflict.Current.Version != "2" {
		t.Errorf("any other copy meets %v", context.Cause(landing))
	}
	third := w.Begin("k", "1", "n")
	if w.Landing("k", "n").Err() != nil || !w.Shows("k", "n") {
		t.Error("a later one isn't in doubt")
	}
	landing = w.Landing("k", "n")
	second()
	third()
	w.Landed(landed)
	if landing.Err() == nil || w.Shows("k", "n") || len(w.underWay)+len(w.keys) != 0 {
		t.Errorf("remembered: %v, %v", w.underWay, w.keys)
	}
	if w.Begin("k", "1", "")(); w.Landing("k", "").Err() != nil {
		t.Error("a deletion has landed")
	}
}

// Two writes under one nonce that demand different versions are no copies of one another: that one has landed says nothing of the other.
func TestANonceThatIsUsedAgain(t *testing.T) {
	var w Writes
	first, second := w.Begin("k", "1", "n"), w.Begin("k", "2", "n")
	landing := w.Landing("k", "n")
	w.Landed(store.Record{Key: "k", Nonce: "n", Version: "2"})
	if landing.Err() != nil || !w.Shows("k", "n") {
		t.Error("one has landed, and counts for the other")
	}
	first()
	second()
	if w.Shows("k", "n") || landing.Err() == nil {
		t.Error("in doubt though both have their answers")
	}
}
