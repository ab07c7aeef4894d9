package driver

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/store"
)

// appendRecord appends rec, which passed checkFields, as encoding/json writes a wire.
func appendRecord(b []byte, rec store.Record) []byte {
	b = append(b, `{"v":1`...)
	b = appendField(b, `,"owner":`, rec.Owner)
	b = strconv.AppendUint(append(b, `,"token":`...), uint64(rec.Token), 10)
	if rec.TTL != 0 {
		b = appendField(b, `,"ttl":`, rec.TTL.String())
	}
	b = appendField(b, `,"session":`, rec.Session)
	if !rec.Acquired.IsZero() {
		b = appendTime(append(b, `,"acquired":`...), rec.Acquired)
	}
	b = appendField(b, `,"mark":`, string(rec.Intervention))
	b = appendField(b, `,"note":`, rec.Note)
	b = appendField(b, `,"kind":`, string(rec.Kind))
	if len(rec.Info) > 0 {
		b = appendInfo(append(b, `,"info":`...), rec.Info)
	}
	if len(rec.Past) > 0 {
		b = appendPast(append(b, `,"past":`...), rec.Past)
	}
	if len(rec.Data) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, `,"data":"`...), rec.Data)
		b = append(b, '"')
	}
	b = appendField(b, `,"nonce":`, rec.Nonce)
	return append(b, '}')
}

// appendField appends a name and a text, unless that is empty.
func appendField(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, name...), text)
}

func appendInfo(b []byte, info map[string]string) []byte {
	var room [8]string
	keys := slices.AppendSeq(room[:0], maps.Keys(info))
	slices.Sort(keys)
	separator := byte('{')
	for _, k := range keys {
		b = appendText(append(b, separator), k)
		b = appendText(append(b, ':'), info[k])
		separator = ','
	}
	return append(b, '}')
}

// appendTime appends t, which passed checkDate, as a string in the form of time.RFC3339Nano, in
// UTC: a record holds up to 17 times, and the time package takes thrice as long.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendTwo(appendTwo(append(b, '"'), year/100), year%100)
	b = appendTwo(append(b, '-'), int(month))
	b = appendTwo(append(b, '-'), day)
	b = appendTwo(append(b, 'T'), hour)
	b = appendTwo(append(b, ':'), minute)
	b = appendTwo(append(b, ':'), second)
	if ns := t.Nanosecond(); ns != 0 {
		b = append(b, ".000000000"...)
		for i := len(b) - 1; ns != 0; i-- {
			b[i] = byte('0' + ns%10)
			ns /= 10
		}
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return append(b, 'Z', '"')
}

// appendTwo appends the two digits of n.
func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// appendText appends s, which is valid UTF-8, as a string of JSON that HTML and JavaScript may
// hold, too.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		if !escaped(c) {
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', byte(c))
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		}
		i += size
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// plain are the bytes that are characters, and not escaped.
var plain = func() (all [256]bool) {
	for c := range rune(utf8.RuneSelf) {
		all[c] = !escaped(c)
	}
	return all
}()

// escaped reports whether c isn't written as it is.
func escaped(c rune) bool {
	switch c {
	case '"', '\\', '<', '>', '&', '\u2028', '\u2029':
		return true
	}
	return c < ' '
}
