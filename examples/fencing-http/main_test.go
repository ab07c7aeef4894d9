package main

import (
	"bytes"
	"regexp"
	"testing"
)

var told = regexp.MustCompile(`^a holds the lease \(token (\d+)\), and sends R1, which the network delays
b holds the lease \(token (\d+)\)
  the resource writes R2
a holds the lease again \(token (\d+)\), and R1 arrives
  the resource refuses it: billing: stale fencing token (\d+): b/\S+ has token (\d+)
  the resource writes R3
$`)

func TestStory(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	m := told.FindStringSubmatch(out.String())
	if m == nil || m[4] != m[1] || m[5] != m[2] || m[1] >= m[2] || m[2] >= m[3] {
		t.Errorf("it told another story:\n%s", &out)
	}
}
