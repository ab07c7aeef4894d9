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

// alone measures what an id costs one goroutine, and crowded what one costs 16.
func alone[T Value](b *testing.B, l Layout, one func(*Generator[T]) (T, error)) {
	g := generator[T](b, l, 1, forever, Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := one(g); err != nil {
			b.Fatal(err)
		}
	}
}

func crowded[T Value](b *testing.B, l Layout, one func(*Generator[T]) (T, error)) {
	g := generator[T](b, l, 1, forever, Options{})
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := one(g); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func with7(g *Generator[ID96]) (ID96, error) { return g.NextWith(7) }

func BenchmarkNext(b *testing.B)              { alone(b, roomy(b), (*Generator[ID]).Next) }
func BenchmarkNextScattered(b *testing.B)     { alone(b, roomyScatter(b), (*Generator[ID96]).Next) }
func BenchmarkNextWith(b *testing.B)          { alone(b, roomyScatter(b), with7) }
func BenchmarkNextBy16(b *testing.B)          { crowded(b, roomy(b), (*Generator[ID]).Next) }
func BenchmarkNextScatteredBy16(b *testing.B) { crowded(b, roomyScatter(b), (*Generator[ID96]).Next) }
func BenchmarkNextWithBy16(b *testing.B)      { crowded(b, roomyScatter(b), with7) }

func BenchmarkAddBy16(b *testing.B) {
	var n atomic.Uint64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Add(1)
		}
	})
}

var forever = FixedWindow(epoch2020, time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC))
