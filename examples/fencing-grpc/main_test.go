package main

import (
	"bytes"
	"regexp"
	"testing"
)

var told = regexp.MustCompile(`^a holds the lease \(token (\d+)\), and begins a stream
  the resource writes R1
b holds the lease \(token (\d+)\), and a doesn't know it
  the resource writes R2
  the resource refuses R3: billing: stale fencing token (\d+): b/\S+ has token (\d+)
  the resource writes R4
$`)

func TestStream(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	m := told.FindStringSubmatch(out.String())
	if m == nil || m[3] != m[1] || m[4] != m[2] || m[1] >= m[2] {
		t.Errorf("it told another story:\n%s", &out)
	}
}
