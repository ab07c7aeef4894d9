package flake

import (
	"fmt"
	"math/bits"
)

// alphabet is digits in ascending order of ASCII, so that texts of one length are ordered as their
// numbers are.
type alphabet struct {
	name         string
	digits       string
	narrow, wide int // digits of 64 and of 96 bits
	values       [256]byte
}

const noDigit = 0xff

func newAlphabet(name, digits string, narrow, wide int) *alphabet {
	a := &alphabet{name: name, digits: digits, narrow: narrow, wide: wide}
	for i := range a.values {
		a.values[i] = noDigit
	}
	for i := range len(digits) {
		a.values[digits[i]] = byte(i)
	}
	return a
}

// alias has each character of from read as the one of to below it.
func (a *alphabet) alias(from, to string) *alphabet {
	for i := range len(from) {
		a.values[from[i]] = a.values[to[i]]
	}
	return a
}

var (
	// Crockford's: no I, L, O and U; read in any case, and I and L as 1, O as 0.
	crockford = newAlphabet("Crockford's base 32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13, 20).
			alias("abcdefghjkmnpqrstvwxyz", "ABCDEFGHJKMNPQRSTVWXYZ").alias("iIlLoO", "111100")
	base62      = newAlphabet("base 62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11, 17)
	hexadecimal = newAlphabet("hex", "0123456789abcdef", 16, 24).alias("ABCDEF", "abcdef")
)

// format writes w with so many digits.
func (a *alphabet) format(w word, width int) string {
	var buf [24]byte
	base := uint64(len(a.digits))
	for i := width - 1; i >= 0; i-- {
		var digit uint64
		digit, w.hi = w.hi%base, w.hi/base
		w.lo, digit = bits.Div64(digit, w.lo, base)
		buf[i] = a.digits[digit]
	}
	return string(buf[:width])
}

// parse reads what format wrote for an id of so many bits.
func (a *alphabet) parse(s string, size int) (w word, err error) {
	width := a.narrow
	if size > 64 {
		width = a.wide
	}
	base := uint64(len(a.digits))
	for i := range len(s) {
		v := uint64(a.values[s[i]])
		if v == noDigit || len(s) != width {
			break
		}
		var carry, high uint64
		carry, w.lo = bits.Mul64(w.lo, base)
		w.lo, high = bits.Add64(w.lo, v, 0)
		w.hi = w.hi*base + carry + high // at most 96 bits and one digit: no overflow
		if i == width-1 && w.hi>>max(size-64, 0) == 0 {
			return w, nil
		}
	}
	return word{}, fmt.Errorf("id %.40q: want %d characters of %s, for %d bits", s, width, a.name, size)
}

// ParseBase32 reads what Base32 writes, in any case of letters, and with Crockford's readings of I,
// L and O.
func ParseBase32[T Value](s string) (T, error) { return parse[T](crockford, s) }

// ParseBase62 reads what Base62 writes.
func ParseBase62[T Value](s string) (T, error) { return parse[T](base62, s) }

// ParseHex reads what Hex writes, in any case of letters.
func ParseHex[T Value](s string) (T, error) { return parse[T](hexadecimal, s) }

func parse[T Value](a *alphabet, s string) (T, error) {
	var none T
	size := 64
	if _, long := any(none).(ID96); long {
		size = maxBits
	}
	w, err := a.parse(s, size)
	if err != nil {
		return none, err
	}
	return idOf[T](w), nil
}
