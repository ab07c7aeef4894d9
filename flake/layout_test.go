package flake

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLayoutsAreWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		layout    Layout
		bits      int
		nodes     uint64
		perSecond float64
		exhausted string
		ordered   bool
	}{
		{Snowflake(), 63, 1024, 4_096_000, "2080-07-10T17:30:30.209Z", true},
		{Sonyflake(), 63, 65536, 25_600, "2188-11-16T03:28:58.88Z", true},
		{TSID(), 64, 1024, 4_096_000, "2089-09-06T15:47:35.552Z", true},
		{Instagram(), 64, 8192, 1_024_000, "2046-06-27T17:00:49.497Z", true},
		{JavaScript(), 53, 32, 128_000, "2089-09-06T15:47:35.552Z", true},
		{Reversed(), 64, 1024, 4_096_000, "2089-09-06T15:47:35.552Z", false},
		{Scatter(), 96, 1024, 4_096_000, "2159-05-15T07:35:11.104Z", false},
		{ObjectID(), 96, 1 << 40, 1 << 24, "2106-02-07T06:28:16Z", true},
	} {
		l := c.layout
		if l.Bits() != c.bits || l.Nodes() != c.nodes || l.PerSecond() != c.perSecond || l.Ordered() != c.ordered {
			t.Errorf("%s: %d bits, %d nodes, %v a second, ordered: %v; want %+v", l.Name(), l.Bits(), l.Nodes(), l.PerSecond(), l.Ordered(), c)
		}
		if got := l.Exhausted().Format(time.RFC3339Nano); got != c.exhausted {
			t.Errorf("%s: exhausted %s, want %s", l.Name(), got, c.exhausted)
		}
		if again, err := NewLayout(l.Spec()); err != nil || again.Exhausted() != l.Exhausted() {
			t.Errorf("%s: made again from its Spec: %v", l.Name(), err)
		}
	}
}

// I4: a layout whose fields don't fit, or that makes ids negative, is refused when it is made, not when ids collide.
func TestPitfall_I4_LayoutsThatOverflowAreRefused(t *testing.T) {
	fields := func(f ...Field) func(*Spec) { return func(s *Spec) { s.Fields = f } }
	for want, set := range map[string]func(*Spec){
		"want a name of 1 to 40":           func(s *Spec) { s.Name = "a b" },
		"unit 1ns: want 1µs to 1h":         func(s *Spec) { s.Unit = 1 },
		"epoch 0001-01-01":                 func(s *Spec) { s.Epoch = time.Time{} },
		"it has no time":                   fields(Field{Part: Sequence, Bits: 12}),
		"time is there twice":              fields(Field{Part: Time, Bits: 20}, Field{Part: Time, Bits: 20}),
		"node of 0 bits":                   fields(Field{Part: Time, Bits: 41}, Field{Part: Node, Bits: 0}),
		"part 5":                           fields(Field{Part: 5, Bits: 41}),
		"97 bits: want 96 at most":         fields(Field{Part: Time, Bits: 41}, Field{Part: Metadata, Bits: 56}),
		"want 62 together at most":         fields(Field{Part: Time, Bits: 41}, Field{Part: Sequence, Bits: 22}),
		"sequence in the first of 64 bits": fields(Field{Part: Sequence, Bits: 12}, Field{Part: Node, Bits: 10}, Field{Part: Time, Bits: 42}),
		"time in the first of 64 bits":     fields(Field{Part: Time, Bits: 42, Reversed: true}, Field{Part: Node, Bits: 22}),
		"44 bits of 1ms are 557 years":     fields(Field{Part: Time, Bits: 44}, Field{Part: Node, Bits: 10}),
	} {
		s := Snowflake().Spec()
		s.Name = "own"
		set(&s)
		if _, err := NewLayout(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestZeroLayoutIsNone(t *testing.T) {
	if _, err := Decode(Layout{}, ID(1)); err == nil {
		t.Error("decoded")
	}
	if _, err := New[ID](Layout{}, 0, forever, Options{}); err == nil {
		t.Error("a generator was made")
	}
}

// anyLayout draws a layout.
func anyLayout(rt *rapid.T) Layout {
	rest := rapid.IntRange(30, maxBits).Draw(rt, "bits")
	var fields []Field
	add := func(p Part, least, most int) {
		if n := min(rest, rapid.IntRange(least, most).Draw(rt, p.String())); n > 0 {
			fields = append(fields, Field{p, n, rapid.Bool().Draw(rt, "reversed")})
			rest -= n
		}
	}
	add(Time, 20, 42)
	add(Sequence, 0, 20)
	add(Node, 0, 32)
	add(Metadata, 0, 32)
	add(Unused, 0, 20)
	fields = rapid.Permutation(fields).Draw(rt, "fields")
	l, err := NewLayout(Spec{Name: "any", Epoch: epoch2020, Unit: time.Millisecond, Fields: fields})
	if err != nil {
		rt.Skip(err) // it would make ids negative
	}
	return l
}

func TestDecodeUndoesEncode(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := anyLayout(rt)
		value := func(p Part) uint64 { return rapid.Uint64Range(0, l.parts[p].max()).Draw(rt, p.String()) }
		want := Parts{l.start(rapid.Int64Range(0, int64(l.ticks)-1).Draw(rt, "tick")), value(Node), value(Sequence), value(Metadata)}
		if l.Bits() <= 64 {
			there[ID](rt, l, want)
		} else {
			there[ID96](rt, l, want)
		}
	})
}

// there encodes and decodes, and sees that the id is within the layout's bits.
func there[T Value](rt *rapid.T, l Layout, want Parts) {
	id, err := Encode[T](l, want)
	if err != nil {
		rt.Fatal(err)
	}
	got, err := Decode(l, id)
	if err != nil || got != want {
		rt.Fatalf("%v: %+v, %v; want %+v", id, got, err, want)
	}
	if w := wordOf(id); l.bits < 64 && w.lo>>l.bits != 0 || l.bits > 64 && w.hi>>(l.bits-64) != 0 || l.bits == 64 && int64(w.lo) < 0 {
		rt.Fatalf("%v is longer than %d bits, or negative", id, l.bits)
	}
}

// A tweet of the documentation of Twitter's API, which says when it was made.
func TestTwittersOwnID(t *testing.T) {
	p, err := Decode(Snowflake(), ID(1050118621198921728))
	if err != nil || p.Time.Truncate(time.Second) != time.Date(2018, 10, 10, 20, 19, 24, 0, time.UTC) || p.Node != 347 || p.Sequence != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPartsThatDontFit(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for want, p := range map[string]Parts{
		"node 1024 doesn't fit: the layout twitter has 10 bits for it, so 1023 is the highest": {Time: now, Node: 1024},
		"sequence 4096 doesn't fit: the layout twitter has 12 bits":                            {Time: now, Sequence: 4096},
		"metadata 1 doesn't fit: the layout twitter has 0 bits":                                {Time: now, Metadata: 1},
		"time 2009-": {Time: now.AddDate(-17, 0, 0)},
		"time 2096-": {Time: now.AddDate(70, 0, 0)},
	} {
		if id, err := Encode[ID](Snowflake(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v; want %q", p, id, err, want)
		}
	}
	for _, c := range []struct {
		l  Layout
		id ID
	}{{JavaScript(), 1 << 53}, {Snowflake(), -1}, {Reversed(), -1}} {
		if p, err := Decode(c.l, c.id); err == nil {
			t.Errorf("%d is of %s: %+v", c.id, c.l.Name(), p)
		}
	}
	if _, err := Decode(Scatter(), ID(1)); err == nil {
		t.Error("an ID was decoded as one of 96 bits")
	}
	if _, err := Encode[ID96](Snowflake(), Parts{Time: now}); err == nil {
		t.Error("an ID96 was made of 63 bits")
	}
}

// The ids of a range are those whose unit of time is in it, whatever else is in them.
func TestRangeHoldsTheIDsOfItsTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := rapid.SampledFrom([]Layout{Snowflake(), Sonyflake(), TSID(), JavaScript()}).Draw(rt, "layout")
		from := l.start(rapid.Int64Range(0, int64(l.ticks)-1000).Draw(rt, "from"))
		to := from.Add(time.Duration(rapid.Int64Range(1, 900).Draw(rt, "ticks")) * l.spec.Unit)
		low, high, err := Range[ID](l, from.Add(l.spec.Unit/2), to.Add(-l.spec.Unit/2))
		if err != nil && to.Sub(from) > l.spec.Unit {
			rt.Fatal(err)
		} else if err != nil {
			return // an empty range
		}
		at := from.Add(time.Duration(rapid.Int64Range(-2, 1000).Draw(rt, "at")) * l.spec.Unit)
		id, err := Encode[ID](l, Parts{
			Time: at, Node: rapid.Uint64Range(0, l.Nodes()-1).Draw(rt, "node"),
			Sequence: rapid.Uint64Range(0, l.parts[Sequence].max()).Draw(rt, "sequence"),
		})
		if err != nil {
			return // before the epoch
		}
		if in, want := low <= id && id < high, !at.Before(from) && at.Before(to); in != want {
			rt.Fatalf("an id of %v is in the range from %v to %v: %v", at, from, to, in)
		}
	})
	now := time.Now()
	for _, l := range []Layout{Reversed()} {
		if _, _, err := Range[ID](l, now, now.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "not in the order of their times") {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
	if _, _, err := Range[ID96](Scatter(), now, now.Add(time.Hour)); err == nil {
		t.Error("a range of scattered ids")
	}
	if _, _, err := Range[ID](Snowflake(), now, now); err == nil {
		t.Error("an empty range")
	}
}
