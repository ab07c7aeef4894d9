package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/internal/durations"
)

// duration is a flag that reads what settings, URLs of stores and JSON read: 1m30s, 30d, 1y.
type duration time.Duration

// String returns "0" for no time, which the help doesn't show as a default.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// Set reads text.
func (d *duration) Set(text string) error {
	got, err := durations.Parse(text)
	if err == nil {
		*d = duration(got)
	}
	return err
}

// Type is what the help calls the value.
func (d *duration) Type() string { return "duration" }

// DurationVar defines a flag for a duration.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	DurationVarP(f, p, name, "", value, usage)
}

// DurationVarP is DurationVar with a shorthand.
func DurationVarP(f *pflag.FlagSet, p *time.Duration, name, short string, value time.Duration, usage string) {
	*p = value
	f.VarP((*duration)(p), name, short, usage)
}
