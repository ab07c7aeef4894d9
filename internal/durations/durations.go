// Package durations reads durations as people write them, in flags, settings, URLs of stores and
// JSON alike.
package durations

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The units beyond those of package time. A day has 24 hours and a year 365 days.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
	Year = 365 * Day
)

var (
	errWant  = errors.New("want a duration such as 20s, 1m30s or 30d")
	errRange = errors.New("want a duration of 292 years at most")
)

// Parse reads a duration such as "1m30s", "30d" or "-1.5h". The units are those of
// [time.ParseDuration], and d, w and y. A number without a unit is an error, but for 0. The error
// says what is wanted, and not what text was.
func Parse(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	if rest == "0" {
		return 0, nil
	}
	if rest == "" {
		return 0, errWant
	}
	var sum time.Duration
	for rest != "" {
		number := rest[:span(rest, true)]
		rest = rest[len(number):]
		unit := rest[:span(rest, false)]
		rest = rest[len(unit):]
		switch {
		case unit != "":
		case number == strings.TrimLeft(text, "+-") && len(number) <= 20:
			return 0, fmt.Errorf("want a duration such as %ss: a number needs a unit", text)
		default:
			return 0, errWant
		}
		d, err := part(number, unit)
		if err != nil {
			return 0, err
		}
		if sum > math.MaxInt64-d {
			return 0, errRange
		}
		sum += d
	}
	if negative {
		sum = -sum
	}
	return sum, nil
}

// span returns how long the number is with which text begins, or else the unit.
func span(text string, number bool) int {
	for i := range len(text) {
		if c := text[i]; (c >= '0' && c <= '9' || c == '.') != number {
			return i
		}
	}
	return len(text)
}

// part reads one number with its unit.
func part(number, unit string) (time.Duration, error) {
	hours := time.Duration(1)
	switch unit {
	case "d":
		hours = Day / time.Hour
	case "w":
		hours = Week / time.Hour
	case "y":
		hours = Year / time.Hour
	}
	if hours > 1 {
		unit = "h"
	}
	d, err := time.ParseDuration(number + unit)
	if err == nil && d <= math.MaxInt64/hours {
		return d * hours, nil
	}
	_, known := time.ParseDuration("1" + unit)
	if _, err := strconv.ParseFloat(number, 64); err == nil && known == nil && len(number) < 100 {
		return 0, errRange
	}
	return 0, errWant
}
