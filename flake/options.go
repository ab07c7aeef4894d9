package flake

import (
	"fmt"
	"time"
)

// Options of a [Generator], about time. The zero value is right for most programs.
type Options struct {
	// Now is where the time comes from: by default the window, if it is a [Clock], else time.Now.
	// It is called from any goroutine.
	Now func() time.Time

	// MaxAhead is how far an id's time may be ahead of the clock, in whole units of the layout. The
	// default is 1 s, which lets a node of Twitter's layout take four million ids at once. A value
	// below 0 means not at all: an id's unit of time is never later than the clock's.
	MaxAhead time.Duration

	// MaxWait is how long one call may wait for the clock when an id would be too far ahead. The
	// default is 100 ms. Below 0 the call fails at once. It waits for true time, whatever Now
	// returns.
	MaxWait time.Duration

	// Lag is how long the time that was read last serves for further ids: one unit of the layout by
	// default, 10 ms at most. Below 0 the clock is read for each id, which costs ten times as much:
	// for tests, and for clocks that are cheap.
	Lag time.Duration
}

func (o Options) withDefaults(l *Layout, w Window) Options {
	if o.Now == nil {
		o.Now = time.Now
		if c, ok := w.(Clock); ok {
			o.Now = c.Now
		}
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{{&o.MaxAhead, time.Second}, {&o.MaxWait, 100 * time.Millisecond}, {&o.Lag, min(l.spec.Unit, 10*time.Millisecond)}} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	o.MaxAhead = max(o.MaxAhead, 0)
	return o
}

// maxOption bounds the times of Options.
const maxOption = 365 * 24 * time.Hour

func (o Options) check() error {
	for _, d := range []struct {
		name string
		long time.Duration
	}{{"MaxAhead", o.MaxAhead}, {"MaxWait", o.MaxWait}, {"Lag", o.Lag}} {
		if d.long > maxOption {
			return fmt.Errorf("option %s %v: want a year at most", d.name, d.long)
		}
	}
	return nil
}
