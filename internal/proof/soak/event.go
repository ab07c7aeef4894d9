package main

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// kind says what an event is about.
type kind string

const (
	wanted   kind = "wanted"   // to have a name
	gone     kind = "gone"     // without it: refused, or tired of waiting
	acquired kind = "acquired" // a name; Since is when the attempt began
	released kind = "released" // or found lost: Text is the cause then
	entered  kind = "entered"  // an unguarded critical section
	left     kind = "left"
	accepted kind = "accepted" // a write to the guarded file
	refused  kind = "refused"  // as stale
	wrote    kind = "wrote"    // to the guarded resource Resource
	turned   kind = "turned"   // away from it as stale
	erred    kind = "erred"    // there: Text
	slow     kind = "slow"     // a request to the store, from Since to At
	gaveUp   kind = "gaveup"   // an operation, because the store did not answer in time
	failed   kind = "failed"   // something that should work did not: Text
)

// event is what a worker tells: one line of JSON on its standard output. Times are instants of
// clock.System.
type event struct {
	Kind     kind          `json:"k"`
	Name     string        `json:"n,omitempty"`
	Resource string        `json:"r,omitempty"` // a kind
	Token    fence.Token   `json:"t,omitempty"`
	Holder   string        `json:"h,omitempty"`
	Seq      int           `json:"q,omitempty"` // of a guarded write of this process
	At       clock.Instant `json:"a"`
	Since    clock.Instant `json:"s,omitempty"`
	Text     string        `json:"x,omitempty"`
}

// teller writes events.
type teller struct {
	mu sync.Mutex
	w  io.Writer
}

// tell writes one event. A parent that doesn't read any more is gone, and its workers end by
// another path.
func (t *teller) tell(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.w.Write(append(line, '\n'))
}
