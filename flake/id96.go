package flake

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
)

// ID96 is an id of more than 64 bits, up to 96, with the most significant byte first: the order of
// the bytes is the order of the ids. In JSON and as text it is its [ID96.Base32]. In SQL it is its
// 12 bytes.
type ID96 [12]byte

func (id ID96) word() word {
	return word{uint64(binary.BigEndian.Uint32(id[:4])), binary.BigEndian.Uint64(id[4:])}
}

func makeID96(w word) (id ID96) {
	binary.BigEndian.PutUint64(id[:8], w.hi<<32|w.lo>>32) // in the pieces in which the id is copied
	binary.BigEndian.PutUint32(id[8:], uint32(w.lo))
	return id
}

// Compare returns -1, 0 or 1 if id is before, equal to or after other.
func (id ID96) Compare(other ID96) int { return bytes.Compare(id[:], other[:]) }

// String is Base32.
func (id ID96) String() string { return id.Base32() }

// Base32 is 20 characters in Crockford's base 32. The order of texts is the order of ids.
func (id ID96) Base32() string { return crockford.format(id.word(), crockford.wide) }

// Base62 is 17 characters of 0-9A-Za-z. The order of texts is the order of ids.
func (id ID96) Base62() string { return base62.format(id.word(), base62.wide) }

// Hex is 24 characters of 0-9a-f. The order of texts is the order of ids.
func (id ID96) Hex() string { return hexadecimal.format(id.word(), hexadecimal.wide) }

// AppendText appends Base32.
func (id ID96) AppendText(b []byte) ([]byte, error) { return append(b, id.Base32()...), nil }

// MarshalText is Base32.
func (id ID96) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads Base32.
func (id *ID96) UnmarshalText(text []byte) error {
	got, err := ParseBase32[ID96](string(text))
	if err == nil {
		*id = got
	}
	return err
}

// Value gives the 12 bytes to a database: BYTEA, BINARY(12), BLOB.
func (id ID96) Value() (driver.Value, error) { return id[:], nil }

// Scan reads 12 bytes, Base32, or Hex from a database.
func (id *ID96) Scan(src any) error {
	switch v := src.(type) {
	case []byte:
		if len(v) == len(id) {
			copy(id[:], v)
			return nil
		}
		return id.scan(string(v))
	case string:
		return id.scan(v)
	}
	return fmt.Errorf("id: can't be read from a %T: want 12 bytes, or text", src)
}

func (id *ID96) scan(text string) error {
	parse := ParseBase32[ID96]
	if len(text) == hexadecimal.wide {
		parse = ParseHex[ID96]
	}
	got, err := parse(text)
	if err == nil {
		*id = got
	}
	return err
}
