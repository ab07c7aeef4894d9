package flake

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxText bounds what ParseLayout reads.
const maxText = 400

// usualBits is how long the ids of a specification are that doesn't say so: an int64 that is never
// negative.
const usualBits = 63

// example is a specification.
const example = "epoch=2026-01-01,unit=1ms,time=41,node=10,sequence=12"

// ParseLayout returns the layout that a text names or describes. The text is the name of one of
// [Layouts] (snowflake is twitter, too), or a specification, such as
//
//	epoch=2026-01-01,unit=1ms,time=41,node=10,sequence=12
//
// The parts are in the order of their bits, from the most significant one on: time, node, sequence,
// metadata and unused. Each has its number of bits, and ":reversed" behind it where its least
// significant bit comes first. The epoch is a date, a time as in RFC 3339, or the number of
// milliseconds since 1970. The default unit is 1ms. The bits have to be 63 together, or as many as
// bits=N says. So a forgotten part is an error, and not another layout.
//
// The layout's name is its [Layout.String]. So a specification of ids that one of [Layouts] has is
// that layout.
func ParseLayout(text string) (Layout, error) {
	if l, ok := named(text); ok {
		return l, nil
	}
	if text == "snowflake" {
		return Snowflake(), nil
	}
	l, err := parseSpec(text)
	if err != nil {
		return Layout{}, fmt.Errorf("layout %.120q: %w", text, err)
	}
	return l, nil
}

func parseSpec(text string) (Layout, error) {
	switch {
	case !strings.Contains(text, "="):
		return Layout{}, fmt.Errorf("want one of %s, or a specification such as %s", strings.Join(names(), ", "), example)
	case len(text) > maxText:
		return Layout{}, fmt.Errorf("%d bytes: want %d at most", len(text), maxText)
	}
	s, bits := Spec{Unit: time.Millisecond}, usualBits
	seen := map[string]bool{}
	for field := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		if seen[key] && key != Unused.String() {
			return Layout{}, fmt.Errorf("%s=%s: %s is there twice: want it once", key, value, key)
		}
		seen[key] = true
		if err := s.read(&bits, key, value); err != nil {
			return Layout{}, err
		}
	}
	sum := 0
	for _, f := range s.Fields {
		sum += f.Bits
	}
	switch {
	case !seen["epoch"]:
		return Layout{}, fmt.Errorf("epoch is missing: from when on time is counted, such as epoch=2026-01-01")
	case sum != bits && seen["bits"]:
		return Layout{}, fmt.Errorf("bits=%d: the parts have %d bits together: want as many", bits, sum)
	}
	s.Name = s.String()
	l, err := newLayout(s)
	switch {
	case err != nil:
		return Layout{}, err
	case sum != bits:
		return Layout{}, fmt.Errorf("the parts have %d bits together: want %d, or bits=%d if ids are to be as long", sum, bits, sum)
	}
	return l.usual(), nil
}

// read reads a field of a specification.
func (s *Spec) read(bits *int, key, value string) (err error) {
	switch key {
	case "epoch":
		if s.Epoch, err = parseEpoch(value); err != nil {
			return fmt.Errorf("epoch=%s: want a date (2026-01-01), a time (2026-01-01T00:00:00Z), or ms since 1970", value)
		}
		return nil
	case "unit":
		if s.Unit, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("unit=%s: want 1us to 1h, such as 1ms", value)
		}
		return nil
	case "bits":
		if *bits, err = strconv.Atoi(value); err != nil {
			return fmt.Errorf("bits=%s: want how long ids are, such as 63", value)
		}
		return nil
	}
	for p := Unused; p <= Metadata; p++ {
		if p.String() != key {
			continue
		}
		text, reversed := strings.CutSuffix(value, ":reversed")
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 64 {
			return fmt.Errorf("%s=%s: want 1 to 64 bits, such as %s=10, with :reversed or without", key, value, key)
		}
		s.Fields = append(s.Fields, Field{p, n, reversed})
		return nil
	}
	return fmt.Errorf("%s=%s: want epoch, unit, bits, time, node, sequence, metadata or unused", key, value)
}

func parseEpoch(text string) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms).UTC(), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC(), err
}

// String is the specification, without the name, as [ParseLayout] reads it.
func (s Spec) String() string {
	var b strings.Builder
	// µ is left to people: the text is in names of pools, and in paths
	fmt.Fprintf(&b, "epoch=%s,unit=%s", stamp(s.Epoch), strings.Replace(s.Unit.String(), "µ", "u", 1))
	sum := 0
	for _, f := range s.Fields {
		sum += f.Bits
	}
	if sum != usualBits {
		fmt.Fprintf(&b, ",bits=%d", sum)
	}
	for _, f := range s.Fields {
		fmt.Fprintf(&b, ",%v=%d", f.Part, f.Bits)
		if f.Reversed {
			b.WriteString(":reversed")
		}
	}
	return b.String()
}

// String identifies the layout: layouts that make the same id of the same parts have one text,
// whatever their names are. It returns the name of the one of [Layouts] that has such ids, or else
// a specification. [ParseLayout] reads both. The zero Layout has none.
func (l Layout) String() string {
	if l.bits == 0 {
		return ""
	}
	return l.usual().Name()
}

// knownSpecs are the layouts by their specifications in the usual form.
var knownSpecs = sync.OnceValue(func() map[string]Layout {
	all := map[string]Layout{}
	for _, l := range Layouts() {
		s := l.usualSpec()
		all[s.String()] = l
	}
	return all
})

// usual returns the layout with such ids that has the usual form, or the one of Layouts that has
// such ids.
func (l Layout) usual() Layout {
	s := l.usualSpec()
	s.Name = s.String()
	if there, ok := knownSpecs()[s.Name]; ok {
		return there
	}
	same, err := newLayout(s)
	if err != nil { // none: it has no more bits than l
		return l
	}
	return same
}

// usualSpec returns what a layout is made from, and no more: ids of other specifications can be the
// same.
func (l Layout) usualSpec() Spec {
	s := l.Spec()
	var fields []Field
	for _, f := range s.Fields {
		f.Reversed = f.Reversed && f.Bits > 1 && f.Part != Unused
		last := len(fields) - 1
		switch {
		case f.Part == Unused && last < 0 && l.bits <= 64: // an int64 has zeros there anyway
		case f.Part == Unused && last >= 0 && fields[last].Part == Unused:
			sum := fields[last].Bits + f.Bits
			if fields[last].Bits = min(sum, 64); sum > 64 {
				fields = append(fields, Field{Part: Unused, Bits: sum - 64})
			}
		default:
			fields = append(fields, f)
		}
	}
	if first := &s.Fields[0]; l.bits == 64 && first.Part == Time && first.Bits > 1 {
		fields[0].Bits-- // the sign, which is never set
	}
	s.Fields = fields
	return s
}
