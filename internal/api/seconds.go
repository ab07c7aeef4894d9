package api

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/durations"
)

// Seconds is a duration as it is written in JSON: a number of seconds. A string such as "1m30s" is
// read, too.
type Seconds time.Duration

// MarshalJSON writes a number of seconds, to the millisecond, rounded up.
func (s Seconds) MarshalJSON() ([]byte, error) { return s.Append(nil), nil }

// UnmarshalJSON reads a number of seconds, or a string with units. The error is of the kind to
// which package json adds the field.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var word string
	var err error
	if strings.HasPrefix(string(text), `"`) {
		if err = json.Unmarshal(text, &word); err == nil {
			err = s.parse(word)
		}
	} else {
		err = s.number(string(text))
	}
	if err != nil {
		return &json.UnmarshalTypeError{Value: string(text), Type: reflect.TypeFor[Seconds]()}
	}
	return nil
}

// ParseSeconds reads what a query parameter says: "15", "0.5" or "1m30s".
func ParseSeconds(text string) (s Seconds, err error) {
	if s.number(text) == nil {
		return s, nil
	}
	return s, s.parse(text)
}

func (s *Seconds) parse(word string) error {
	d, err := durations.Parse(word)
	if err != nil {
		return fmt.Errorf(`%.40q: want a number of seconds, or a duration such as "1m30s" or "30d"`, word)
	}
	*s = Seconds(d)
	return nil
}

func (s *Seconds) number(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	// NaN is no number either.
	if ns := f * float64(time.Second); err == nil && math.Abs(ns) < math.MaxInt64 {
		*s = Seconds(math.Round(ns))
		return nil
	}
	return fmt.Errorf("%.40s: want a number of seconds", text)
}
