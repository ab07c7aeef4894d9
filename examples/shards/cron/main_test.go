package main

import (
	"bytes"
	"strings"
	"testing"
)

// While workers join, leave and die, each tick of each job is fired once, by several workers.
func TestFleet(t *testing.T) {
	var out bytes.Buffer
	r, err := play(t.Context(), &out, 10_000)
	t.Log(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if r.twice > 0 || r.skipped > 0 || r.never > 0 {
		t.Errorf("%d ticks were fired twice, %d skipped; %d jobs never fired", r.twice, r.skipped, r.never)
	}
	for name, n := range r.byWorker {
		if n == 0 {
			t.Errorf("%s fired nothing", name)
		}
	}
	if len(r.byWorker) != 5 || r.fired < 10_000 {
		t.Errorf("fired %d times, by %v", r.fired, r.byWorker)
	}
}
