package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/store/driver"
)

// Values are the values of a pool: a range, names, or prefixes.
type Values struct {
	Range string   `json:"range,omitempty"` // integers, both ends included: "1-254"
	Names []string `json:"names,omitempty"` // each of them once
	// A network, "10.0.0.0/16", that is cut into networks with prefixes of Bits.
	Prefix string `json:"prefix,omitempty"`
	Bits   int    `json:"bits,omitempty"` // 24: "10.0.0.0/24", "10.0.1.0/24" and so on
}

// The most values that a pool can have, and the most bytes of all its names together.
const (
	MaxSize  = pools.MaxSize
	maxNames = 16 << 10
)

func (v Values) String() string {
	switch {
	case v.Range != "":
		return "the range " + v.Range
	case v.Prefix != "":
		return fmt.Sprintf("the /%d prefixes of %s", v.Bits, v.Prefix)
	case len(v.Names) > 8:
		return fmt.Sprintf("the %d names %s and so on", len(v.Names), strings.Join(v.Names[:8], ", "))
	}
	return "the names " + strings.Join(v.Names, ", ")
}

func (v Values) isZero() bool {
	return v.Range == "" && v.Prefix == "" && v.Bits == 0 && len(v.Names) == 0
}

// equal reports whether both have the same values. Names may be in another order: a pool has its
// own.
func (v Values) equal(o Values) bool {
	return v.Range == o.Range && v.Prefix == o.Prefix && v.Bits == o.Bits && slices.Equal(slices.Sorted(slices.Values(v.Names)), slices.Sorted(slices.Values(o.Names)))
}

// set is Values that were checked.
type set struct {
	Values
	size int
	low  uint64
	net  netip.Prefix
	at   map[string]int // of names
}

// Check returns an error that says what is wrong with the values, or nil. The zero Values stand for
// the declared ones, and are not wrong.
func (v Values) Check() error {
	if v.isZero() {
		return nil
	}
	_, err := v.check()
	return err
}

// check returns the set, with Values in their usual form.
func (v Values) check() (set, error) {
	kinds := 0
	for _, used := range []bool{v.Range != "", len(v.Names) > 0, v.Prefix != "" || v.Bits != 0} {
		if used {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return set{}, fmt.Errorf("values %+v: want one of Range, Names, and Prefix with Bits", v)
	case v.Range != "":
		return v.checkRange()
	case v.Prefix != "" || v.Bits != 0:
		return v.checkPrefix()
	}
	return v.checkNames()
}

func (v Values) checkRange() (set, error) {
	first, last, _ := strings.Cut(v.Range, "-")
	low, errLow := strconv.ParseUint(strings.TrimSpace(first), 10, 63)
	high, errHigh := strconv.ParseUint(strings.TrimSpace(last), 10, 63)
	if errLow != nil || errHigh != nil || high < low || high-low >= MaxSize {
		return set{}, fmt.Errorf("range %.40q: want two integers like 1-254, the lower one first, and at most %d values", v.Range, MaxSize)
	}
	v.Range = fmt.Sprintf("%d-%d", low, high)
	return set{Values: v, size: int(high-low) + 1, low: low}, nil
}

func (v Values) checkPrefix() (set, error) {
	net, err := netip.ParsePrefix(v.Prefix)
	if err != nil {
		return set{}, fmt.Errorf("prefix %.60q: want a network like 10.0.0.0/16", v.Prefix)
	}
	more := v.Bits - net.Bits()
	if more < 0 || v.Bits > net.Addr().BitLen() || more > 16 {
		return set{}, fmt.Errorf("prefix %s, bits %d: want bits from %d to %d", v.Prefix, v.Bits, net.Bits(), min(net.Bits()+16, net.Addr().BitLen()))
	}
	net = net.Masked()
	v.Prefix = net.String()
	return set{Values: v, size: 1 << more, net: net}, nil
}

func (v Values) checkNames() (set, error) {
	s := set{Values: v, size: len(v.Names), at: map[string]int{}}
	bytes := 0
	for i, name := range v.Names {
		if err := driver.CheckKey(name); err != nil {
			return set{}, fmt.Errorf("name %.60q: %w", name, err)
		}
		if _, twice := s.at[name]; twice {
			return set{}, fmt.Errorf("names: %.60q is there twice", name)
		}
		s.at[name] = i
		bytes += len(name)
	}
	if bytes > maxNames {
		return set{}, fmt.Errorf("names of %d bytes: want at most %d together", bytes, maxNames)
	}
	return s, nil
}

// value returns the value at place i, from 0 on.
func (s *set) value(i int) string {
	switch {
	case s.Range != "":
		return strconv.FormatUint(s.low+uint64(i), 10)
	case s.Prefix != "":
		raw := s.net.Addr().AsSlice()
		for b := range s.Bits - s.net.Bits() {
			if i>>b&1 == 1 {
				bit := s.Bits - 1 - b
				raw[bit/8] |= 0x80 >> (bit % 8)
			}
		}
		addr, _ := netip.AddrFromSlice(raw)
		return netip.PrefixFrom(addr, s.Bits).String()
	}
	return s.Names[i]
}

// place returns where a value is in the pool.
func (s *set) place(value string) (i int, ok bool) {
	switch {
	case s.Range != "":
		n, err := strconv.ParseUint(value, 10, 63)
		i = int(n - s.low)
		ok = err == nil && n >= s.low && n-s.low < uint64(s.size)
	case s.Prefix != "":
		net, err := netip.ParsePrefix(value)
		if err != nil || net.Bits() != s.Bits || !s.net.Contains(net.Addr()) {
			return 0, false
		}
		raw := net.Addr().AsSlice()
		for b := range s.Bits - s.net.Bits() {
			bit := s.Bits - 1 - b
			i |= int(raw[bit/8]>>(7-bit%8)&1) << b
		}
		ok = true
	default:
		i, ok = s.at[value]
	}
	return i, ok && s.value(i) == value
}
