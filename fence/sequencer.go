package fence

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// How a sequencer travels.
const (
	Header      = "Leasehold-Sequencer" // HTTP header
	MetadataKey = "leasehold-sequencer" // gRPC metadata key
	EnvVar      = "LEASEHOLD_SEQUENCER" // environment variable, set by `leasehold run`
)

// Limits of a sequencer.
const (
	MaxName      = 255     // bytes of a name or a holder
	MaxSequencer = 2 << 10 // bytes of its text
)

// Sequencer travels with each request to a guarded resource. It names the lease, the holder and the
// term. [Sequencer.String] returns its text. [Keys.Sign] returns a text that nobody else can
// make.
type Sequencer struct {
	Name   string // of the lease
	Holder string // the owner id of the holder
	Token  Token  // of the term
}

// sequencerV1 begins the text of a sequencer.
const sequencerV1 = "v1"

// String returns the sequencer as text, for a header or a variable: v1;token;name;holder. The last
// two have all but ASCII letters, digits and -._~/:@+= as %XX. The text has no spaces, commas or
// quotes. There is one text for each sequencer.
func (s Sequencer) String() string {
	return sequencerV1 + ";" + s.Token.String() + ";" + escape(s.Name) + ";" + escape(s.Holder)
}

// ParseSequencer reads what [Sequencer.String] wrote. It refuses a signed text, which only
// [Keys.Verify] may read, and everything that is not the one text of a sequencer. Its errors match
// [ErrMalformed].
func ParseSequencer(text string) (Sequencer, error) {
	s, mac, err := split(text)
	if err == nil && mac != "" {
		err = malformed(text, "it is signed: verify it with the keys of its signer")
	}
	if err != nil {
		return Sequencer{}, err
	}
	return s, nil
}

// Of returns an error that matches [ErrOtherName] unless s is of the lease of that name. A resource
// that gets sequencers from others has to call it. Each name has a mark of its own, so a sequencer
// of another name would be judged by the terms of another lease.
func (s Sequencer) Of(name string) error {
	if s.Name != name {
		return fmt.Errorf("%w: this is guarded by %q, and the sequencer is of %q", ErrOtherName, name, s.Name)
	}
	return nil
}

// Valid returns an error that matches [ErrMalformed] unless s can be written as text and read
// again. Its name and holder have to have 1 to [MaxName] bytes of UTF-8, and its token has to be
// one that a term may have.
func (s Sequencer) Valid() error {
	for _, f := range []struct{ field, value string }{{"name", s.Name}, {"holder", s.Holder}} {
		if f.value == "" || len(f.value) > MaxName || !utf8.ValidString(f.value) {
			return fmt.Errorf("%w: %s %.60q: want 1 to %d bytes of UTF-8", ErrMalformed, f.field, f.value, MaxName)
		}
	}
	if s.Token == 0 || s.Token > MaxToken {
		return fmt.Errorf("%w: token %d: want 1 to %d", ErrMalformed, s.Token, MaxToken)
	}
	return nil
}

// split takes a text apart, without a look at the signature.
func split(text string) (s Sequencer, mac string, err error) {
	if len(text) > MaxSequencer {
		return Sequencer{}, "", malformed(text[:60]+"…", fmt.Sprintf("want at most %d bytes", MaxSequencer))
	}
	parts := strings.Split(text, ";")
	if parts[0] != sequencerV1 || len(parts) < 4 || len(parts) > 5 {
		return Sequencer{}, "", malformed(text, "want v1;token;name;holder")
	}
	if s.Token, err = ParseToken(parts[1]); err != nil {
		return Sequencer{}, "", malformed(text, err.Error())
	}
	var nameOK, holderOK bool
	s.Name, nameOK = unescape(parts[2])
	s.Holder, holderOK = unescape(parts[3])
	if !nameOK || !holderOK {
		return Sequencer{}, "", malformed(text, "its name or holder has a % without two hex digits")
	}
	if err := s.Valid(); err != nil {
		return Sequencer{}, "", err
	}
	want := s.String()
	if len(parts) == 5 {
		mac = parts[4]
		want += ";" + mac
	}
	switch {
	case len(parts) == 5 && mac == "":
		err = malformed(text, "its signature is empty")
	case text != want:
		err = malformed(text, "it is not written as a sequencer is: want "+want)
	}
	return s, mac, err
}

func malformed(text, want string) error {
	return fmt.Errorf("%w %.100q: %s", ErrMalformed, text, want)
}

const plain = "-._~/:@+="

func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(plain, c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func unescape(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		high, low := unhex(s[i+1]), unhex(s[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	return b.String(), true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
