package flake

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"
)

// Value is the types that ids can have.
type Value interface{ ID | ID96 }

// Parts is what an id is made of.
type Parts struct {
	Time     time.Time // the beginning of the unit of time
	Node     uint64
	Sequence uint64
	Metadata uint64
}

// word is an id of any length, right-aligned.
type word struct{ hi, lo uint64 }

func (w word) or(v word) word { return word{w.hi | v.hi, w.lo | v.lo} }

// put returns the bits of a part that has a value.
func (p place) put(v uint64) word {
	if p.reversed {
		v = bits.Reverse64(v) >> (64 - p.bits)
	}
	return p.at(v)
}

// at returns bits in their place, as they are.
func (p place) at(v uint64) word {
	// A shift by 64 or more gives 0, as does one by less than 0, which wraps round.
	return word{v<<(p.shift-64) | v>>(64-p.shift), v << p.shift}
}

// get returns the value of a part.
func (p place) get(w word) uint64 {
	v := (w.lo>>p.shift | w.hi<<(64-p.shift) | w.hi>>(p.shift-64)) & p.max()
	if p.reversed {
		v = bits.Reverse64(v) >> (64 - p.bits)
	}
	return v
}

// Decode returns the parts of an id of a layout. An id isn't of that layout if it has bits where
// the layout has none, or is longer or shorter than those of [New]. That is an error. Nothing else
// distinguishes layouts.
func Decode[T Value](l Layout, id T) (Parts, error) {
	if err := fits[T](l); err != nil {
		return Parts{}, err
	}
	w := wordOf(id)
	tick := l.parts[Time].get(w)
	p := Parts{l.start(int64(tick)), l.parts[Node].get(w), l.parts[Sequence].get(w), l.parts[Metadata].get(w)}
	if l.pack(tick, p.Sequence, p.Node, p.Metadata) != w {
		return Parts{}, fmt.Errorf("id %v is not of the layout %s: it has bits where that has none", id, l.Name())
	}
	return p, nil
}

// Encode returns the id that is made of p, whose time is rounded down to a unit. Parts that don't
// fit are an [OverflowError], and so is a time before the epoch or after the end of the layout.
func Encode[T Value](l Layout, p Parts) (T, error) {
	var none T
	if err := fits[T](l); err != nil {
		return none, err
	}
	for _, f := range []struct {
		part  Part
		value uint64
	}{{Node, p.Node}, {Sequence, p.Sequence}, {Metadata, p.Metadata}} {
		if err := l.holds(f.part, f.value); err != nil {
			return none, err
		}
	}
	tick := l.tick(p.Time)
	if tick < 0 || uint64(tick) >= l.ticks {
		return none, &OverflowError{l.Name(), Time, p.Time.String(), l.Width(Time)}
	}
	return idOf[T](l.pack(uint64(tick), p.Sequence, p.Node, p.Metadata)), nil
}

// Range returns bounds for a query, low ≤ id < high. They contain the ids with units of time from
// the one of from up to, and without, the first unit that begins at to or later. Layouts that
// aren't [Layout.Ordered] have no such bounds: that is an error.
func Range[T Value](l Layout, from, to time.Time) (low, high T, err error) {
	if err := fits[T](l); err != nil {
		return low, high, err
	}
	if !l.Ordered() {
		return low, high, fmt.Errorf("ids of the layout %s are not in the order of their times: no range of ids is a range of time", l.Name())
	}
	first, last := l.tick(from), l.tickFrom(to)
	if first < 0 || uint64(first) >= l.ticks || last >= l.ticks || !from.Before(to) {
		return low, high, fmt.Errorf("times from %v to %v: want a range between %v and %v, the time of the layout %s",
			from, to, l.spec.Epoch, l.Exhausted(), l.Name())
	}
	return idOf[T](l.parts[Time].put(uint64(first))), idOf[T](l.parts[Time].put(last)), nil
}

// holds returns an OverflowError unless a value fits into the bits of a part.
func (l *Layout) holds(part Part, v uint64) error {
	if v > l.parts[part].max() {
		return &OverflowError{l.Name(), part, strconv.FormatUint(v, 10), l.Width(part)}
	}
	return nil
}

// pack makes an id of parts that fit.
func (l *Layout) pack(tick, sequence, node, metadata uint64) word {
	return l.parts[Time].put(tick).or(l.parts[Sequence].put(sequence)).or(l.parts[Node].put(node)).or(l.parts[Metadata].put(metadata))
}

// fits returns an error unless ids of l have the type T.
func fits[T Value](l Layout) error {
	var id T
	_, long := any(id).(ID96)
	switch {
	case l.bits == 0:
		return fmt.Errorf("the zero Layout has no ids: make one with NewLayout, or take one that is there")
	case long != (l.bits > 64):
		return fmt.Errorf("an id of the layout %s has %d bits: up to 64 are an ID, more an ID96", l.Name(), l.bits)
	}
	return nil
}

func wordOf[T Value](id T) word {
	switch v := any(id).(type) {
	case ID:
		return word{0, uint64(v)}
	case ID96:
		return v.word()
	}
	return word{}
}

func idOf[T Value](w word) T {
	var id T
	switch p := any(&id).(type) {
	case *ID:
		*p = ID(w.lo)
	case *ID96:
		*p = makeID96(w)
	}
	return id
}
