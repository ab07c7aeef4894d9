package main

import (
	"bytes"
	"regexp"
	"testing"
)

var told = regexp.MustCompile(`^  the bank moves 100 under token (\d+)
the worker has seen that its lease is valid, and is paused; another takes over
  the bank moves 50 under token (\d+)
the paused worker wakes up
  the bank refuses it: payments: stale fencing token (\d+): worker/\S+ has token (\d+)
alice has 150, bob has 150
$`)

func TestTransfers(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	m := told.FindStringSubmatch(out.String())
	if m == nil || m[3] != m[1] || m[4] != m[2] || m[1] >= m[2] {
		t.Errorf("it told another story:\n%s", &out)
	}
}
