package protocol

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

func TestTimingDefaults(t *testing.T) {
	got := Timing{}.WithDefaults()
	want := Timing{TTL: 15 * time.Second, Margin: 0.2, Drift: 0.11, Renew: 5 * time.Second, Attempt: 750 * time.Millisecond}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got.Validity() != 12*time.Second {
		t.Errorf("valid for %v", got.Validity())
	}
	for ttl, attempt := range map[time.Duration]time.Duration{
		store.MinTTL: time.Millisecond, 500 * time.Millisecond: 50 * time.Millisecond, time.Second: 100 * time.Millisecond,
		2 * time.Second: 100 * time.Millisecond, time.Minute: 3 * time.Second, store.MaxTTL: store.MaxTTL / 20,
	} {
		d := Timing{TTL: ttl}.WithDefaults()
		if err := d.Check(); err != nil {
			t.Errorf("defaults of TTL %v: %v", ttl, err)
		}
		if d.Attempt != attempt || d.Renew != ttl/3 {
			t.Errorf("TTL %v: attempts of %v every %v, want %v", ttl, d.Attempt, d.Renew, attempt)
		}
	}
}

func TestTimingCheck(t *testing.T) {
	for name, c := range map[string]struct {
		timing Timing
		want   []string // in the error; none: no error
	}{
		"the defaults":              {Timing{}, nil},
		"chrony's slewing":          {Timing{Drift: 0.0833, Margin: LeastMargin(0.0833)}, nil},
		"the formula's own result":  {Timing{Drift: 0.11, Margin: LeastMargin(0.11)}, nil},
		"as rounded in the message": {Timing{Drift: 0.11, Margin: 0.1983}, nil},
		"the least there is":        {Timing{TTL: store.MinTTL}, nil},
		"the most there is":         {Timing{TTL: store.MaxTTL}, nil},
		"a margin below the drift's": {
			Timing{Margin: 0.15}, []string{"unsafe margin 0.15", "11 %", "2·0.11/(1+0.11) = 0.1982", "raise the margin"},
		},
		"a margin below chrony's": {
			Timing{Margin: 0.15, Drift: 0.0833}, []string{"unsafe margin 0.15", "8.33 %", "2·0.0833/(1+0.0833) = 0.1538"},
		},
		"the drift doubled": {Timing{Drift: 0.22}, []string{"unsafe margin 0.2", "22 %", "2·0.22/(1+0.22) = 0.3607"}},
		"too short":         {Timing{TTL: 9 * time.Millisecond}, []string{"TTL 9ms", "10ms to 8784h"}},
		"too long":          {Timing{TTL: store.MaxTTL + 1}, []string{"TTL 8784h0m0.000000001s", "10ms to 8784h"}},
		"negative":          {Timing{TTL: -time.Second}, []string{"TTL -1s"}},
		"drift of 1":        {Timing{Drift: 1}, []string{"drift 1:", "below 1", "0.11 is 11 %"}},
		"negative drift":    {Timing{Drift: -0.1}, []string{"drift -0.1:", "above 0"}},
		"no drift":          {Timing{Drift: math.NaN()}, []string{"drift NaN:"}},
		"margin of 1":       {Timing{Margin: 1}, []string{"margin 1:", "below 1"}},
		"negative margin":   {Timing{Margin: -0.2}, []string{"margin -0.2:"}},
		"no margin":         {Timing{Margin: math.NaN()}, []string{"margin NaN:"}},
		"negative renewal":  {Timing{Renew: -time.Second}, []string{"renewal every -1s", "above 0"}},
		"negative attempts": {Timing{Attempt: -time.Second}, []string{"attempts of -1s", "above 0"}},
		"renewal too late": {
			Timing{Renew: 11 * time.Second},
			[]string{"renewal every 11s", "attempts of 750ms", "15s·(1−0.2) = 12s", "11s + 2·750ms = 12.5s", "renew earlier or raise the TTL"},
		},
		"attempts too long":  {Timing{Attempt: 4 * time.Second}, []string{"5s + 2·4s = 13s", "= 12s"}},
		"a retry to the dot": {Timing{Attempt: 3500 * time.Millisecond}, nil},
	} {
		err := c.timing.WithDefaults().Check()
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q doesn't say %q", name, err, part)
			}
		}
	}
}

// What was left out is not taken for zero by mistake: the defaults have to be filled in before.
func TestTimingCheckWantsEachField(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(d *Timing)
		want  string
	}{
		"drift":    {func(d *Timing) { d.Drift = 0 }, "drift 0: want"},
		"margin":   {func(d *Timing) { d.Margin = 0 }, "margin 0: want"},
		"renewals": {func(d *Timing) { d.Renew = 0 }, "renewal every 0s"},
		"attempts": {func(d *Timing) { d.Attempt = 0 }, "attempts of 0s"},
	} {
		d := Timing{}.WithDefaults()
		c.leave(&d)
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("without %s: %v, want: %s", name, err, c.want)
		}
	}
	if err := (Timing{Renew: 1, Attempt: 1}).WithDefaults().Check(); err != nil {
		t.Errorf("one nanosecond is above 0: %v", err)
	}
	if err := (Timing{Margin: -0.2}).WithDefaults().Check(); err == nil || !strings.Contains(err.Error(), "above 0 and below 1") {
		t.Errorf("a negative margin: %v", err)
	}
}

// Whatever timings pass: at the worst rates within the bound, the holder has stopped when the taker starts.
func TestTimingThatPassesIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timing := Timing{
			TTL:    time.Duration(rapid.Int64Range(int64(store.MinTTL), int64(store.MaxTTL)).Draw(t, "TTL")),
			Drift:  rapid.Float64Range(1e-6, 0.5).Draw(t, "drift"),
			Margin: rapid.Float64Range(1e-6, 0.99).Draw(t, "margin"),
		}.WithDefaults()
		if timing.Check() != nil {
			return
		}
		valid := float64(timing.Validity())
		if valid <= 0 || valid > float64(timing.TTL)*(1-timing.Margin)+1e-6*valid {
			t.Errorf("valid for %v of %v with a margin of %v", timing.Validity(), timing.TTL, timing.Margin)
		}
		holder, taker := valid/(1-timing.Drift), float64(timing.TTL)/(1+timing.Drift)
		if holder > taker*(1+1e-8) {
			t.Errorf("the holder stops after %v, the taker starts after %v", time.Duration(holder), time.Duration(taker))
		}
	})
}

func TestRetryPauses(t *testing.T) {
	timing := Timing{}.WithDefaults()
	for n, want := range map[int]time.Duration{
		0: 100 * time.Millisecond, 1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 3: 750 * time.Millisecond, 1 << 40: 750 * time.Millisecond,
	} {
		if got := timing.retry(n); got != want {
			t.Errorf("pause %d is %v, want %v", n, got, want)
		}
	}
	for _, ttl := range []time.Duration{store.MinTTL, store.MaxTTL} {
		for n := range 20 {
			d := Timing{TTL: ttl}.WithDefaults()
			if got := d.retry(n); got < time.Millisecond || got > d.Attempt {
				t.Errorf("TTL %v: pause %d is %v", ttl, n, got)
			}
		}
	}
}

// At worst an outage begins with a renewal, and ends when a request has just been sent that gets no answer: then come the longest pause between
// two retries, and the renewal that is in time.
func TestSurvives(t *testing.T) {
	r := heldRig(t)
	r.sleep()
	r.jitter = 1
	longest := time.Duration(0)
	for range 6 {
		r.wrote("", errRefused)
		failed := r.now
		r.sleep()
		longest = max(longest, r.now.Sub(failed))
	}
	if got, want := rigTiming().Survives(rigValidity), rigValidity-rigRenew-rigAttempt-longest; got != want {
		t.Errorf("survives %v, want %v: the longest pause between two retries is %v", got, want, longest)
	}
}

// On a clock that ticks no holder counts on more than TTL·(1−δ) of true time, and no taker waits less than the TTL, whatever the phase of
// the ticks.
func TestFinding_S15_ClockThatTicks(t *testing.T) {
	const tick = 16 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		phase := rapid.Int64Range(0, int64(tick)-1).Draw(t, "phase")
		read := func(at time.Duration) clock.Instant {
			return clock.Instant((int64(at)-phase)/int64(tick)*int64(tick) + phase)
		}
		timing := Timing{TTL: time.Duration(rapid.Int64Range(int64(store.MinTTL), int64(time.Second)).Draw(t, "ttl")), Margin: 0.2}
		margin := time.Duration(math.Ceil(float64(timing.TTL) * timing.Margin))
		began := time.Hour + time.Duration(rapid.Int64Range(0, int64(tick)).Draw(t, "began"))
		after := time.Duration(rapid.Int64Range(0, int64(tick)).Draw(t, "after"))
		if read(began+timing.TTL-margin+after) < read(began).Add(timing.validity(tick)) {
			t.Fatalf("%v after the last instant the hold is valid", after)
		}
		seen := Seen{Rec: store.Record{TTL: timing.TTL}, Since: read(began), Known: true}
		if before := after + 1; read(began+timing.TTL-before) >= seen.dead(tick) {
			t.Fatalf("%v before the TTL has passed the holder is dead", before)
		}
	})
}
