package shardmap

import (
	"fmt"
	"math"
	"testing"
)

// The ID of a range is its two ends as 16 hexadecimal digits each: people and other languages write it.
func TestIDOfARange(t *testing.T) {
	for _, s := range []Slice{{}, {To: math.MaxUint64}, {From: 1 << 62, To: 1<<63 - 1}, {From: 0x0123456789abcdef, To: 0xfedcba9876543210}} {
		if got, want := s.ID(), fmt.Sprintf("%016x-%016x", s.From, s.To); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (Slice{Name: "a", From: 1, To: 1}).ID(); got != "a" {
		t.Errorf("the ID of the name a is %s", got)
	}
}
