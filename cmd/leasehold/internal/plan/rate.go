package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/durations"
)

// Rate is how often something happens, as people write it: "1/day", "2/year", "1/36h"; "0" is
// never. Months are twelfths of a year. It is a pflag.Value. The zero value is never.
type Rate struct {
	perYear float64
	text    string
}

var units = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": day, "week": 7 * day, "month": Year / 12, "year": Year,
}

// ParseRate reads a rate. Its errors say what is wanted.
func ParseRate(s string) (Rate, error) {
	s = strings.TrimSpace(s)
	number, per, divided := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 0) || !divided && n != 0 {
		return Rate{}, fmt.Errorf("%q: want how often in what time, as 1/day, 2/year or 1/36h, or 0", s)
	}
	if n == 0 {
		return Rate{text: "0"}, nil
	}
	per = strings.TrimSpace(per)
	unit, known := units[per]
	if !known {
		if unit, err = durations.Parse(per); err != nil || unit <= 0 {
			return Rate{}, fmt.Errorf("%q: %q is no time: want second, minute, hour, day, week, month, year, or a duration such as 36h", s, per)
		}
	}
	r := Rate{n * float64(Year) / float64(unit), s}
	if math.IsInf(r.perYear, 0) {
		return Rate{}, fmt.Errorf("%q: that is more often than can be counted", s)
	}
	return r, nil
}

// PerYear is how often it happens in a [Year].
func (r Rate) PerYear() float64 { return r.perYear }

// String is what was parsed.
func (r Rate) String() string {
	if r.text == "" {
		return "0"
	}
	return r.text
}

// Set and Type make a Rate a flag.
func (r *Rate) Set(s string) error {
	parsed, err := ParseRate(s)
	if err == nil {
		*r = parsed
	}
	return err
}

// Type is what a flag's help calls the value.
func (r *Rate) Type() string { return "rate" }

// times is the downtime of a year when each time costs so long; a year at most.
func (r Rate) times(each time.Duration) time.Duration {
	return time.Duration(min(r.perYear*float64(each), float64(Year)))
}
