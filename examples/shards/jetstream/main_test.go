package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// While consumers join, leave and stop at once, each order is counted exactly once.
func TestEachOrderIsCountedOnce(t *testing.T) {
	var out bytes.Buffer
	r, err := play(t.Context(), &out, servers.NATS(t).URL)
	t.Log(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if r.counted != r.published || r.published.Count < 500 {
		t.Errorf("published %+v, counted %+v", r.published, r.counted)
	}
	if r.repeated == 0 {
		t.Error("no order was read again: no consumer stopped between two checkpoints")
	}
}
