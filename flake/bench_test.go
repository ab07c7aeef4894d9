package flake

import (
	"sync/atomic"
	"testing"
	"time"
)

// roomy has room for more ids than a machine can make, so that what is measured is what an id costs.
func roomy(tb testing.TB) Layout {
	l, err := NewLayout(Spec{
		Name: "roomy", Epoch: epoch2020, Unit: time.Millisecond,
		Fields: []Field{{Part: Time, Bits: 40}, {Part: Node, Bits: 1}, {Part: Sequence, Bits: 22}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func BenchmarkNext(b *testing.B) {
	g, err := New[ID](roomy(b), 1, forever, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// roomyScatter is as roomy, with its bits where Scatter has them.
func roomyScatter(tb testing.TB) Layout {
	l, err := NewLayout(Spec{
		Name: "roomy", Epoch: epoch2020, Unit: time.Millisecond,
		Fields: []Field{
			{Part: Sequence, Bits: 22, Reversed: true}, {Part: Time, Bits: 40, Reversed: true}, {Part: Node, Bits: 2}, {Part: Metadata, Bits: 32},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func BenchmarkNextScattered(b *testing.B) {
	g, err := New[ID96](roomyScatter(b), 1, forever, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextWith(b *testing.B) {
	g, err := New[ID96](roomyScatter(b), 1, forever, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.NextWith(7); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNextScatteredBy16(b *testing.B) {
	g, err := New[ID96](roomyScatter(b), 1, forever, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNextBy16(b *testing.B) {
	g, err := New[ID](roomy(b), 1, forever, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAddBy16(b *testing.B) {
	var n atomic.Uint64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Add(1)
		}
	})
}

var forever = Between(epoch2020, time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC))
