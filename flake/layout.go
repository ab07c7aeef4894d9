package flake

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Part is what some bits of an id are.
type Part uint8

// The parts.
const (
	Unused   Part = iota // zero
	Time                 // units since the epoch
	Node                 // the machine that made the id
	Sequence             // distinguishes ids of one unit of time and one node
	Metadata             // what the caller likes
)

func (p Part) String() string {
	if names := [...]string{"unused", "time", "node", "sequence", "metadata"}; int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("part %d", uint8(p))
}

// Field is some neighbouring bits of an id.
type Field struct {
	Part Part
	Bits int
	// Its least significant bit comes first, so that what changes fastest decides the order.
	Reversed bool
}

// Spec describes a layout.
type Spec struct {
	Name string // 1 to 40 of a-z, 0-9 and -; or what String returns
	// From the most significant bit on; each part once at most, Unused as often as needed.
	Fields []Field
	Epoch  time.Time     // where the time begins
	Unit   time.Duration // of the time: 1 µs to 1 h
}

// maxBits is how long an id can be.
const maxBits = 96

// maxState bounds time and sequence together, which a generator keeps in one word with a bit to
// spare.
const maxState = 62

// Layout is a checked [Spec]. The zero value is none: nothing can be done with it.
type Layout struct {
	spec  Spec
	bits  int
	parts [Metadata + 1]place // by Part; that of Unused says nothing
	ticks uint64              // how many units of time there are
}

// place is where a part is.
type place struct {
	bits, shift uint
	reversed    bool
}

func (p place) max() uint64 { return 1<<p.bits - 1 }

// NewLayout returns the layout that s describes, or an error that says what is wrong with s. Wrong
// are a name, an epoch or a unit out of range, and a part that is missing, repeated or too wide. So
// are a width that makes ids negative, and more time than can be counted.
func NewLayout(s Spec) (Layout, error) {
	l, err := newLayout(s)
	if err != nil {
		return Layout{}, fmt.Errorf("layout %.40q: %w", s.Name, err)
	}
	return l, nil
}

func newLayout(s Spec) (Layout, error) {
	s.Fields = slices.Clone(s.Fields)
	l := Layout{spec: s}
	if err := l.fill(); err != nil {
		return Layout{}, err
	}
	return l, nil
}

func (l *Layout) fill() error {
	if err := l.spec.check(); err != nil {
		return err
	}
	for _, f := range slices.Backward(l.spec.Fields) {
		p := &l.parts[f.Part]
		if f.Part != Unused && p.bits > 0 {
			return fmt.Errorf("%v is there twice: want it once", f.Part)
		}
		*p = place{uint(f.Bits), uint(l.bits), f.Reversed}
		l.bits += f.Bits
	}
	timed, sequence := l.parts[Time], l.parts[Sequence]
	switch {
	case timed.bits == 0:
		return fmt.Errorf("it has no time: want one bit of it at least")
	case timed.bits+sequence.bits > maxState:
		return fmt.Errorf("%d bits of time and %d of sequence: want %d together at most", timed.bits, sequence.bits, maxState)
	case l.bits > maxBits:
		return fmt.Errorf("%d bits: want %d at most", l.bits, maxBits)
	}
	l.ticks = 1 << timed.bits
	if top := l.spec.Fields[0]; l.bits == 64 && top.Part != Unused {
		// The sign of an int64. Time reaches it late: the ids end there.
		if top.Part != Time || top.Reversed {
			return fmt.Errorf("%v in the first of 64 bits makes ids negative: begin with an unused bit", top.Part)
		}
		l.ticks /= 2
	}
	if years := float64(l.ticks) * float64(l.spec.Unit) / (365.2425 * 24 * float64(time.Hour)); l.ticks > uint64(math.MaxInt64/l.spec.Unit) {
		return fmt.Errorf("%d bits of %v are %.0f years: want 292 at most", timed.bits, l.spec.Unit, years)
	}
	return nil
}

func (s Spec) check() error {
	strange := slices.ContainsFunc([]byte(s.Name), func(c byte) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z')
	})
	if (strange || len(s.Name) < 1 || len(s.Name) > 40) && s.Name != s.String() {
		return fmt.Errorf("want a name of 1 to 40 of a-z, 0-9 and -")
	}
	if s.Unit < time.Microsecond || s.Unit > time.Hour {
		return fmt.Errorf("unit %v: want 1µs to 1h", s.Unit)
	}
	if year := s.Epoch.Year(); year < 1970 || year > 2200 {
		return fmt.Errorf("epoch %v: want one in 1970 to 2200", s.Epoch)
	}
	for _, f := range s.Fields {
		if f.Part > Metadata {
			return fmt.Errorf("%v: want unused, time, node, sequence or metadata", f.Part)
		}
		if f.Bits < 1 || f.Bits > 64 {
			return fmt.Errorf("%v of %d bits: want 1 to 64", f.Part, f.Bits)
		}
	}
	return nil
}

// Name returns the layout's name.
func (l Layout) Name() string { return l.spec.Name }

// Spec returns what the layout was made from.
func (l Layout) Spec() Spec {
	s := l.spec
	s.Fields = slices.Clone(s.Fields)
	return s
}

// Bits returns how long an id is.
func (l Layout) Bits() int { return l.bits }

// Width returns how many bits a part has; 0 if it isn't there.
func (l Layout) Width(p Part) int {
	if p == Unused || p > Metadata {
		return 0
	}
	return int(l.parts[p].bits)
}

// Nodes returns how many nodes are possible, numbered from 0. For a node of 64 bits it returns one
// less than their number.
func (l Layout) Nodes() uint64 { return max(l.parts[Node].max(), l.parts[Node].max()+1) }

// PerSecond returns how many ids a node can make in a second, for ever.
func (l Layout) PerSecond() float64 {
	return float64(uint64(1)<<l.parts[Sequence].bits) * float64(time.Second) / float64(l.spec.Unit)
}

// Exhausted returns the time from which on the layout has no time left and no id can be made.
func (l Layout) Exhausted() time.Time {
	return l.spec.Epoch.Add(time.Duration(l.ticks) * l.spec.Unit).UTC()
}

// Ordered reports whether ids are in the order of their times, so that [Range] works.
func (l Layout) Ordered() bool {
	i := slices.IndexFunc(l.spec.Fields, func(f Field) bool { return f.Part != Unused })
	return i >= 0 && l.spec.Fields[i].Part == Time && !l.spec.Fields[i].Reversed
}

// tick returns how many whole units after the epoch t is; below 0 before it.
func (l *Layout) tick(t time.Time) int64 {
	d := t.Sub(l.spec.Epoch)
	n := int64(d / l.spec.Unit)
	if d%l.spec.Unit < 0 {
		n--
	}
	return n
}

// tickFrom returns the first unit that begins at t or later, from 0 to the end of the layout.
func (l *Layout) tickFrom(t time.Time) uint64 {
	n := l.tick(t)
	if l.start(n).Before(t) {
		n++
	}
	return min(uint64(max(n, 0)), l.ticks)
}

// start returns when a unit begins.
func (l *Layout) start(tick int64) time.Time {
	return l.spec.Epoch.Add(time.Duration(tick) * l.spec.Unit).UTC()
}
