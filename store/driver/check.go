package driver

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// CheckKey returns an *[store.InvalidError] unless key is 1 to [store.MaxKey] bytes of printable
// UTF-8. Engines call it first in Get, Delete and Wait.
func CheckKey(key string) error {
	if key == "" {
		return &store.InvalidError{Field: "Key", Value: `""`, Want: "a name of at least one character"}
	}
	return checkText("Key", key)
}

// CheckPrefix is [CheckKey] for the prefix of a List, which may be empty.
func CheckPrefix(prefix string) error { return checkText("Key", prefix) }

// Check returns an *[store.InvalidError] for a record that no engine may take. In such a record a
// field breaks a limit of package store, or the whole is larger than [store.MaxRecord] as JSON.
// Engines call Check first in Put, unless they call [Marshal], which checks the same.
func Check(rec store.Record) error {
	const growth = 6 // at most: < is written as \u003c
	if growth*sizeHint(rec) <= store.MaxRecord {
		return checkFields(rec)
	}
	_, err := Marshal(rec)
	return err
}

// sizeHint is about how many bytes a record takes in JSON, rather too many.
func sizeHint(rec store.Record) int {
	n := 256 + len(rec.Owner) + len(rec.Session) + len(rec.Intervention) + len(rec.Note) + len(rec.Kind) + len(rec.Nonce)
	for k, v := range rec.Info {
		n += len(k) + len(v) + 6
	}
	for _, t := range rec.Past {
		n += len(t.Owner) + len(t.Why) + 64
	}
	return n + base64.StdEncoding.EncodedLen(len(rec.Data))
}

func checkFields(rec store.Record) error {
	if err := CheckKey(rec.Key); err != nil {
		return err
	}
	for _, f := range []struct{ name, text string }{
		{"Owner", rec.Owner}, {"Session", rec.Session}, {"Nonce", rec.Nonce}, {"Intervention", string(rec.Intervention)}, {"Note", rec.Note},
		{"Kind", string(rec.Kind)},
	} {
		if err := checkText(f.name, f.text); err != nil {
			return err
		}
	}
	if rec.Token > fence.MaxToken {
		return &store.InvalidError{Field: "Token", Value: rec.Token.String(), Want: "at most 2^53 - 1"}
	}
	if rec.Owner != "" && rec.Token == 0 {
		return &store.InvalidError{Field: "Token", Value: "0", Want: "a token above 0 for a record with an owner"}
	}
	if rec.TTL < 0 || rec.TTL > store.MaxTTL || (rec.Owner != "" && rec.TTL < store.MinTTL) {
		return &store.InvalidError{Field: "TTL", Value: rec.TTL.String(), Want: fmt.Sprintf("%v to %v", store.MinTTL, store.MaxTTL)}
	}
	if len(rec.Past) > store.MaxPast {
		return &store.InvalidError{Field: "Past", Value: strconv.Itoa(len(rec.Past)) + " terms", Want: fmt.Sprintf("at most %d", store.MaxPast)}
	}
	for k, v := range rec.Info {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return &store.InvalidError{Field: "Info", Value: quote(k) + "=" + quote(v), Want: "valid UTF-8"}
		}
	}
	if err := checkDate("Acquired", rec.Acquired); err != nil {
		return err
	}
	return checkPast(rec.Past)
}

// checkDate refuses what RFC 3339 can't write.
func checkDate(field string, t time.Time) error {
	if at := t.Unix(); at < earliest || at >= latest {
		return &store.InvalidError{Field: field, Value: fmt.Sprintf("in the year %d", t.UTC().Year()), Want: "a date in the years 0 to 9999"}
	}
	return nil
}

// The bounds of dates, in seconds as Unix counts them: each write of a record checks up to 17.
var (
	earliest = time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	latest   = time.Date(10000, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
)

func checkPast(past []store.Term) error {
	for _, t := range past {
		for _, text := range []string{t.Owner, t.Why} {
			if err := checkText("Past", text); err != nil {
				return err
			}
		}
		if t.Token > fence.MaxToken {
			return &store.InvalidError{Field: "Past", Value: t.Token.String(), Want: "tokens of at most 2^53 - 1"}
		}
		for _, date := range []time.Time{t.From, t.Until} {
			if err := checkDate("Past", date); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkText(field, s string) error {
	if len(s) > store.MaxKey {
		return &store.InvalidError{Field: field, Value: quote(s), Want: fmt.Sprintf("at most %d bytes, not %d", store.MaxKey, len(s))}
	}
	if isPrintableASCII(s) { // most are
		return nil
	}
	if !utf8.ValidString(s) {
		return &store.InvalidError{Field: field, Value: quote(s), Want: "valid UTF-8"}
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return &store.InvalidError{Field: field, Value: quote(s), Want: fmt.Sprintf("printable characters only, not %q", r)}
		}
	}
	return nil
}

func isPrintableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
