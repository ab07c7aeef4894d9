package redis

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// shelf says which fields of a hash hold the terms of Past, and what they are. It is part of the
// version, so whoever writes at that version knows without a read whether the terms that are there
// are those of its record, or those and a new one.
type shelf struct {
	// The field of the newest term, and how many there are; before it comes the one that is older,
	// around.
	newest, terms int
	// digests: of all that stay when a term is added, and of the one that goes then, "" before.
	kept, oldest string
}

const (
	randomSize = 26 // of what rand.Text returns
	digestSize = 11
	keeps      = store.MaxPast - 1
)

// newVersion returns one that no record ever had, of a record without terms.
func newVersion() string { return rand.Text() }

// shelve returns a new version for a record of these terms that replaces the one of version old,
// and the fields of terms to write: names and values in turn.
func shelve(old string, past []store.Term) (version string, fields []any) {
	if len(past) == 0 {
		return newVersion(), nil
	}
	next := shelf{terms: len(past), kept: digest(past[:min(len(past), keeps)])}
	if len(past) > keeps {
		next.oldest = digest(past[keeps:])
	}
	was, _ := shelfOf(old) // without digests if there are none, and these are never empty
	missing := past
	switch {
	case was.kept == next.kept && was.oldest == next.oldest:
		next.newest, missing = was.newest, nil
	case was.kept == digest(past[1:]):
		next.newest, missing = (was.newest+1)%store.MaxPast, past[:1]
	default:
		next.newest = next.terms - 1
	}
	for i, t := range missing {
		fields = append(fields, next.field(i), driver.MarshalTerm(t))
	}
	return newVersion() + next.String(), fields
}

// shelfOf returns what a version says, and false for one of a record without terms.
func shelfOf(version string) (shelf, bool) {
	const begins, ends = randomSize + len("-00"), randomSize + len("-00") + digestSize
	if len(version) != ends && len(version) != ends+digestSize {
		return shelf{}, false
	}
	s := shelf{int(version[begins-2] - '0'), int(version[begins-1] - '0'), version[begins:ends], version[ends:]}
	if version[randomSize] != '-' || s.newest < 0 || s.newest >= store.MaxPast || s.terms < 1 || s.terms > store.MaxPast || (s.terms > keeps) != (s.oldest != "") {
		return shelf{}, false
	}
	return s, true
}

// String returns it as versions end with it.
func (s shelf) String() string {
	return "-" + strconv.Itoa(s.newest) + strconv.Itoa(s.terms) + s.kept + s.oldest
}

// slot returns where the term of that age is; the newest has age 0.
func (s shelf) slot(age int) int { return (s.newest - age + store.MaxPast) % store.MaxPast }

func (s shelf) field(age int) string { return "past" + strconv.Itoa(s.slot(age)) }

// digest returns what tells terms from others.
func digest(terms []store.Term) string {
	var room [1 << 10]byte
	b := room[:0]
	for _, t := range terms {
		b = binary.AppendUvarint(b, uint64(t.Token))
		b = binary.AppendVarint(binary.AppendVarint(b, t.From.Unix()), t.Until.Unix())
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(t.From.Nanosecond())), uint64(t.Until.Nanosecond()))
		b = append(binary.AppendUvarint(b, uint64(len(t.Owner))), t.Owner...)
		b = append(binary.AppendUvarint(b, uint64(len(t.Why))), t.Why...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// terms returns the terms that a version speaks of, the newest first, out of the fields past0 to
// past7.
func terms(version string, fields []any) ([]string, error) {
	s, ok := shelfOf(version)
	if !ok {
		return nil, nil
	}
	found := make([]string, s.terms)
	for age := range found {
		if found[age], ok = fields[s.slot(age)].(string); !ok {
			return nil, fmt.Errorf("its hash lacks %s, of which its version speaks", s.field(age))
		}
	}
	return found, nil
}

// blame returns why a record of these terms can't be read: err, with the name of the field.
func blame(version string, terms []string, err error) error {
	s, _ := shelfOf(version)
	for age, text := range terms {
		if _, err := unmarshalApart([]byte(`{"v":1,"token":0}`), []string{text}); err != nil {
			return fmt.Errorf("%s: %w", s.field(age), err)
		}
	}
	return fmt.Errorf("record: %w", err)
}
