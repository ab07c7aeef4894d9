package ids

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake"

	"github.com/leasehold/leasehold/flake"
)

// maker is one way to an id. Those that count in a layout with few numbers a second are there twice: as they are shipped, when the
// layout sets the pace, and with so many numbers that the code does.
type maker struct {
	name string
	make func(b *testing.B) func() error // returns what makes one id
}

var makers = []maker{
	{"leasehold twitter", func(b *testing.B) func() error { return next[flake.ID](b, flake.Snowflake()) }},
	{"leasehold twitter, 22 bits of sequence", func(b *testing.B) func() error { return next[flake.ID](b, roomy(b)) }},
	{"leasehold scatter, 22 bits of sequence", func(b *testing.B) func() error { return next[flake.ID96](b, roomyScatter(b)) }},
	{"leasehold scatter with metadata, 22 bits of sequence", func(b *testing.B) func() error {
		g := waiting[flake.ID96](b, roomyScatter(b))
		return func() error { _, err := g.NextWith(7); return err }
	}},
	{"leasehold sonyflake", func(b *testing.B) func() error { return next[flake.ID](b, flake.Sonyflake()) }},
	{"bwmarrin/snowflake", func(b *testing.B) func() error { return snowflakes(b, 10, 12) }},
	{"bwmarrin/snowflake, 22 bits of sequence", func(b *testing.B) func() error { return snowflakes(b, 0, 22) }},
	{"sony/sonyflake", func(b *testing.B) func() error {
		s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
		if err != nil {
			b.Fatal(err)
		}
		return func() error { _, err := s.NextID(); return err }
	}},
	{"rs/xid", func(*testing.B) func() error { return func() error { _ = xid.New(); return nil } }},
	{"oklog/ulid", func(*testing.B) func() error { return func() error { _ = ulid.Make(); return nil } }},
	{"google/uuid v7", func(*testing.B) func() error { return func() error { _, err := uuid.NewV7(); return err } }},
}

func next[T flake.Value](b *testing.B, l flake.Layout) func() error {
	g := waiting[T](b, l)
	return func() error { _, err := g.Next(); return err }
}

// waiting is a generator with the default options, but that it waits for as long as it has to, as the others do.
func waiting[T flake.Value](b *testing.B, l flake.Layout) *flake.Generator[T] {
	g, err := flake.New[T](l, 0, flake.FixedWindow(time.Now(), time.Now().Add(time.Hour)), flake.Options{MaxWait: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Stop() })
	return g
}

func roomy(b *testing.B) flake.Layout {
	return layout(b, flake.Field{Part: flake.Time, Bits: 40}, flake.Field{Part: flake.Sequence, Bits: 22})
}

func roomyScatter(b *testing.B) flake.Layout {
	return layout(b, flake.Field{Part: flake.Sequence, Bits: 22, Reversed: true}, flake.Field{Part: flake.Time, Bits: 40, Reversed: true},
		flake.Field{Part: flake.Metadata, Bits: 32})
}

func layout(b *testing.B, fields ...flake.Field) flake.Layout {
	l, err := flake.NewLayout(flake.Spec{Name: "roomy", Epoch: flake.TSID().Spec().Epoch, Unit: time.Millisecond, Fields: fields})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// snowflakes sets the library's layout, which it keeps in package variables.
func snowflakes(b *testing.B, node, step uint8) func() error {
	snowflake.NodeBits, snowflake.StepBits = node, step
	n, err := snowflake.NewNode(0)
	if err != nil {
		b.Fatal(err)
	}
	return func() error { _ = n.Generate(); return nil }
}

// turns is how often ids and adds take turns, since the load of the machine changes.
const turns = 16

func BenchmarkID(b *testing.B) {
	for _, m := range makers {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("of=%s/callers=%d", m.name, callers), func(b *testing.B) {
				id := m.make(b)
				b.ReportAllocs()
				var ids, adds float64 // nanoseconds each
				b.ResetTimer()
				for i := range turns {
					b.StartTimer()
					ids += share(b, (b.N+i)/turns, callers, id)
					b.StopTimer()
					adds += share(b, max(b.N/turns, 1<<18), callers, adder())
				}
				b.ReportMetric(ids/adds, "adds")
			})
		}
	}
}

// BenchmarkAdd is an atomic add to one variable: what the callers have to share at least.
func BenchmarkAdd(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			share(b, b.N, callers, adder())
		})
	}
}

func adder() func() error {
	var n atomic.Int64
	return func() error { n.Add(1); return nil }
}

// share has so many goroutines call f n times together, and returns the nanoseconds from one call to the next; 0 if there is none.
func share(b *testing.B, n, callers int, f func() error) float64 {
	if n == 0 {
		return 0
	}
	var group sync.WaitGroup
	start := time.Now()
	for i := range callers {
		group.Go(func() {
			for range (n + i) / callers {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return float64(time.Since(start)) / float64(n)
}
