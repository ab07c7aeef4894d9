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
		layout            Layout
		leading, trailing bool
	}{
		{Scatter(), true, true},
		{with(sequence, timed, metadata), true, true},
		{with(sequence, timed, metadata, Field{Part: Node, Bits: 3}), true, false},
		{with(sequence, timed, node, Field{Part: Metadata, Bits: 20}, Field{Part: Unused, Bits: 12}), true, true},
		{with(sequence, timed, node, Field{Part: Metadata, Bits: 32, Reversed: true}), true, false},
		{with(timed, sequence, node, metadata), false, false},
		{with(node, sequence, timed, metadata), false, false},
		{with(sequence, node, timed, metadata), false, false},
		{with(sequence, timed, Field{Part: Metadata, Bits: 20}), false, false}, // some of it is beyond the first 64 bits
		{with(Field{Part: Unused, Bits: 2}, sequence, timed, metadata), false, false},
		{with(Field{Part: Sequence, Bits: 12}, timed, node, metadata), false, false},
	} {
		s := generator[ID96](t, c.layout, c.layout.Nodes()-1, forever, Options{}).state
		if s.leading != c.leading || s.trailing != c.trailing {
			t.Errorf("%+v: leading: %v, trailing: %v", c.layout.Spec().Fields, s.leading, s.trailing)
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
			if !s.trailing {
				continue
			}
			m := rand.Uint64() & c.layout.parts[Metadata].max()
			want := makeID96(s.pack(n).or(c.layout.parts[Metadata].put(m)))
			if s.trailingID(&got, n, m); got != want {
				t.Fatalf("%+v: %x with %x becomes %v, want %v", c.layout.Spec().Fields, n, m, got.Hex(), want.Hex())
			}
		}
	}
}
