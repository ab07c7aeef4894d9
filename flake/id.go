package flake

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
)

// ID is an id of up to 64 bits. A generator makes no negative one. So ids have the same order as
// numbers, in a database's BIGINT, and as text of [ID.Base32], [ID.Base62] and [ID.Hex]. A negative
// ID comes after all others as text.
//
// In JSON it is a string of its decimal digits, since JavaScript's numbers have 53 bits only.
// Convert it to an int64 for a number. Both are read.
type ID int64

// Compare returns -1, 0 or 1 if id is before, equal to or after other.
func (id ID) Compare(other ID) int { return cmp.Compare(id, other) }

// String is decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Base32 is 13 characters in Crockford's base 32, as TSID writes them. The order of texts is the
// order of ids.
func (id ID) Base32() string { return crockford.format(wordOf(id), crockford.narrow) }

// Base62 is 11 characters of 0-9A-Za-z. The order of texts is the order of ids.
func (id ID) Base62() string { return base62.format(wordOf(id), base62.narrow) }

// Hex is 16 characters of 0-9a-f. The order of texts is the order of ids.
func (id ID) Hex() string { return hexadecimal.format(wordOf(id), hexadecimal.narrow) }

// Parse reads decimal digits, as [ID.String] writes them.
func Parse(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("id %.40q: want the decimal digits of an int64", s)
	}
	return ID(n), nil
}

// AppendText appends the decimal digits.
func (id ID) AppendText(b []byte) ([]byte, error) { return strconv.AppendInt(b, int64(id), 10), nil }

// MarshalText is decimal; in JSON it becomes a string.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads decimal digits.
func (id *ID) UnmarshalText(text []byte) error {
	got, err := Parse(string(text))
	if err == nil {
		*id = got
	}
	return err
}

// UnmarshalJSON reads a string of decimal digits, or a number without fraction and exponent. It
// leaves id alone at null.
func (id *ID) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		return nil
	}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	return id.UnmarshalText([]byte(text))
}

// Value gives an int64 to a database.
func (id ID) Value() (driver.Value, error) { return int64(id), nil }

// Scan reads an int64, or decimal digits, from a database. A NULL is an error: scan into a
// sql.Null[ID] where there may be one.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		*id = ID(v)
		return nil
	case []byte:
		return id.UnmarshalText(v)
	case string:
		return id.UnmarshalText([]byte(v))
	}
	return fmt.Errorf("id: can't be read from a %T: want an int64, or text", src)
}
