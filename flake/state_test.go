package flake

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The short way to an id that begins with its number in reverse gives what the long one does.
func TestLeadingIDs(t *testing.T) {
	with := func(fields ...Field) Layout {
		l, err := NewLayout(Spec{Name: "own", Epoch: epoch2020, Unit: time.Millisecond, Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	sequence, timed := Field{Part: Sequence, Bits: 12, Reversed: true}, Field{Part: Time, Bits: 42, Reversed: true}
	node, metadata := Field{Part: Node, Bits: 10}, Field{Part: Metadata, Bits: 32}
	for _, c := range []struct {
		layout  Layout
		leading bool
	}{
		{Scatter(), true},
		{with(sequence, timed, metadata), true},
		{with(sequence, timed, metadata, Field{Part: Node, Bits: 3}), true},
		{with(timed, sequence, node, metadata), false},
		{with(node, sequence, timed, metadata), false},
		{with(sequence, node, timed, metadata), false},
		{with(sequence, timed, Field{Part: Metadata, Bits: 20}), false}, // some of it is beyond the first 64 bits
		{with(Field{Part: Unused, Bits: 2}, sequence, timed, metadata), false},
		{with(Field{Part: Sequence, Bits: 12}, timed, node, metadata), false},
	} {
		s := generator[ID96](t, c.layout, c.layout.Nodes()-1, forever, Options{}).state
		if s.leading != c.leading {
			t.Errorf("%+v: leading: %v", c.layout.Spec().Fields, s.leading)
		}
		for range 1000 {
			if !s.leading {
				break
			}
			var got ID96
			n := rand.Uint64N(c.layout.ticks << s.seqBits)
			if s.leadingID(&got, n); got != makeID96(s.pack(n)) {
				t.Fatalf("%+v: %x becomes %v, want %v", c.layout.Spec().Fields, n, got.Hex(), makeID96(s.pack(n)).Hex())
			}
		}
	}
}
