package durations_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/durations"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "-0": 0, "20s": 20 * time.Second, "1m30s": 90 * time.Second, "-1.5h": -90 * time.Minute, "+5ms": 5 * time.Millisecond, "3µs": 3 * time.Microsecond,
		"30d": 720 * time.Hour, "1w": 168 * time.Hour, "1y": 8760 * time.Hour, "1y2w3d4h5m6s": (8760+336+72+4)*time.Hour + 5*time.Minute + 6*time.Second,
		"1.5d": 36 * time.Hour, ".5w": 84 * time.Hour, "-30d": -720 * time.Hour, "292y": 292 * 8760 * time.Hour, "1d1d": 48 * time.Hour,
	} {
		if got, err := durations.Parse(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"20": "want a duration such as 20s: a number needs a unit", "-5": "such as -5s", "0.5": "such as 0.5s",
		"": "want a duration such as 20s, 1m30s or 30d", "-": "want a duration", "soon": "want a duration", "d": "want a duration", "1 d": "want a duration", "1D": "want a duration",
		"5s3": "want a duration", "1h 30m": "want a duration", "--5s": "want a duration", "1..5d": "want a duration", ".d": "want a duration", "5mo": "want a duration", "１d": "want a duration",
		"293y": "292 years at most", "292y52w": "292 years at most", "99999999999999999999d": "292 years at most", "9999999h": "292 years at most",
		strings.Repeat("9", 1000): "want a duration", "NaN": "want a duration", "1e3s": "want a duration", "0x10s": "want a duration",
	} {
		if got, err := durations.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// Whatever package time reads, Parse reads as the same; what else it reads is in days, weeks and years.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1m30s", "30d", "-1y", "5", "1.5w", "9223372036854775807ns", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := durations.Parse(text)
		want, failed := time.ParseDuration(text)
		if failed == nil && (err != nil || got != want) && want != -1<<63 {
			t.Errorf("%q: %v, %v; package time says %v", text, got, err, want)
		}
		if failed != nil && err == nil && !strings.ContainsAny(text, "dwy") {
			t.Errorf("%q: %v; package time says %v", text, got, failed)
		}
	})
}
