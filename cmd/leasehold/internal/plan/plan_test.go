package plan

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func rate(t *testing.T, s string) Rate {
	t.Helper()
	r, err := ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// base is an election that is timed as usual, and nothing happens.
func base() Input {
	return Input{
		Restart: 2 * time.Second, Detect: 5 * time.Minute, Deploy: 2 * time.Minute, Outage: 5 * time.Minute,
		Replicas: 3, Timing: library, Poll: time.Second,
	}
}

// library is the library's timing with its default TTL of 15 s.
var library, _ = Library(15 * time.Second)

func compute(t *testing.T, in Input) Plan {
	t.Helper()
	p, err := Compute(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The cases that the question is usually asked with, one at a time. With a TTL of 15 s a takeover takes 15 − 5/2 + 1/2 s =
// 13 s on average, a hand-over 0.5 s.
func TestTheCasesOfTheBook(t *testing.T) {
	for _, c := range []struct {
		what       string
		set        func(*Input)
		one        time.Duration
		nines      int
		elected    time.Duration
		electedIs  int
		forElected bool
	}{
		{
			"a crash a day, 2 s to restart", func(in *Input) { in.Crashes = rate(t, "1/day") },
			365 * 2 * time.Second, 4, 365 * 13 * time.Second, 3, false,
		},
		{
			"the same, and a crash releases the lease",
			func(in *Input) { in.Crashes, in.CrashReleases = rate(t, "1/day"), true },
			365 * 2 * time.Second, 4, 365 * 500 * time.Millisecond, 5, true,
		},
		{
			// With a machine lost that often, all three replicas are down together for Y·(5/1440)³ as well.
			"a machine lost daily, 5 min to detect and replace", func(in *Input) { in.Machines = rate(t, "1/day") },
			365 * 5 * time.Minute, 2, 365*13*time.Second + time.Duration(float64(Year)*math.Pow(5.0/1440, 3)), 3, true,
		},
		{
			"a deployment of 2 min daily", func(in *Input) { in.Deploys = rate(t, "1/day") },
			365 * 2 * time.Minute, 2, 365 * 500 * time.Millisecond, 5, true,
		},
		{
			"a deployment of 2 min hourly", func(in *Input) { in.Deploys = rate(t, "1/hour") },
			8760 * 2 * time.Minute, 1, 8760 * 500 * time.Millisecond, 3, true,
		},
	} {
		in := base()
		c.set(&in)
		p := compute(t, in)
		if !near(p.One.Total, c.one) || p.One.Nines != c.nines {
			t.Errorf("%s: one instance is down for %v, %d nines; want %v, %d", c.what, p.One.Total, p.One.Nines, c.one, c.nines)
		}
		if !near(p.Elected.Total, c.elected) || p.Elected.Nines != c.electedIs {
			t.Errorf("%s: elected replicas are down for %v, %d nines; want %v, %d", c.what, p.Elected.Total, p.Elected.Nines, c.elected, c.electedIs)
		}
		if strings.HasPrefix(p.Advice(), "Elected") != c.forElected {
			t.Errorf("%s: %s", c.what, p.Advice())
		}
	}
}

func near(a, b time.Duration) bool { return (a - b).Abs() <= time.Microsecond }

// TestGapsAreWhatEventsMake draws events at random and plays them out step by step, as the formulas say only in sum. A supervised command
// stops before its validity ends, so both kinds are played.
func TestGapsAreWhatEventsMake(t *testing.T) {
	const n = 200_000
	rnd := rand.New(rand.NewPCG(1, 2))
	supervised := Timing{
		TTL: 20 * time.Second, Renew: 5 * time.Second, Validity: 16 * time.Second, Stops: 13500 * time.Millisecond, Survives: 6 * time.Second,
	}
	for _, outage := range []time.Duration{3 * time.Second, 8 * time.Second, 10 * time.Second, 11900 * time.Millisecond, time.Minute} {
		in := base()
		if in.Outage, in.WarmUp = outage, 700*time.Millisecond; outage == 10*time.Second {
			in.Timing = supervised
		}
		timing := in.Timing
		lag := timing.Stops - timing.Renew - timing.Survives // from the end of an outage to the next request, at most
		in.Outages, in.Machines = rate(t, "1/year"), rate(t, "1/year")
		p := compute(t, in)
		var gone, out float64
		for range n {
			renewed := -rnd.Float64() * float64(timing.Renew)       // when the leader's last renewal was sent, before the event
			seen := renewed + rnd.Float64()*float64(in.Poll)        // when a waiter saw it
			gone += seen + float64(timing.TTL) + float64(in.WarmUp) // the leader vanishes at 0
			ends := renewed + float64(timing.Stops)                 // or the store does
			if float64(outage+lag) > ends {
				back := rnd.Float64() * float64(in.Poll) // somebody notices that it is back
				out += max(0, float64(outage)-ends) + back + float64(in.WarmUp)
			}
		}
		if got, want := float64(p.Elected.Down.Machines), gone/n; math.Abs(got-want) > want/100 {
			t.Errorf("a takeover takes %v by the formula, %v played out", time.Duration(got), time.Duration(want))
		}
		if got, want := float64(p.Elected.Down.Outages), out/n; math.Abs(got-want) > max(want/50, float64(time.Millisecond)) {
			t.Errorf("an outage of %v costs %v by the formula, %v played out", outage, time.Duration(got), time.Duration(want))
		}
	}
}

func TestBoundsAndWrites(t *testing.T) {
	in := base()
	in.WarmUp, in.Deploys = 2*time.Second, rate(t, "1/day")
	p := compute(t, in)
	if want := (Bounds{12 * time.Second, 15 * time.Second, 18 * time.Second}); p.Takeover != want {
		t.Errorf("takeover %v, want %v", p.Takeover, want)
	}
	if want := (Bounds{2 * time.Second, 2500 * time.Millisecond, 3 * time.Second}); p.Handover != want {
		t.Errorf("hand-over %v, want %v", p.Handover, want)
	}
	if timing := p.Input.Timing; timing.Stops != 12*time.Second || timing.Survives != 5125*time.Millisecond {
		t.Errorf("it stops after %v, outlasts %v; want 12s, 5.125s", timing.Stops, timing.Survives)
	}
	if want := 3*86400.0/5 + 2; math.Abs(p.Elected.WritesPerDay-want) > 1e-6 || p.One.WritesPerDay != 0 {
		t.Errorf("%v and %v writes a day, want %v and 0", p.Elected.WritesPerDay, p.One.WritesPerDay, want)
	}
}

func TestNinesAndPercent(t *testing.T) {
	for _, c := range []struct {
		down    time.Duration
		nines   int
		percent string
	}{
		{0, -1, "100 %"},
		{Year / 2, 0, "50.00 %"},
		{Year / 10, 1, "90.00 %"},
		{Year/10 + time.Second, 0, "90.00 %"},
		{Year / 30, 1, "96.67 %"},
		{Year / 1000, 3, "99.900 %"},
		{time.Second, 7, "99.9999968 %"},
		{Year, 0, "0.00 %"},
	} {
		s := Side{Down: Causes{Crashes: c.down}}.totalled()
		if s.Nines != c.nines || s.Percent() != c.percent {
			t.Errorf("down for %v: %d nines, %s; want %d, %s", c.down, s.Nines, s.Percent(), c.nines, c.percent)
		}
	}
}

func TestDowntimeIsAYearAtMost(t *testing.T) {
	in := base()
	in.Crashes, in.Restart = rate(t, "1000/second"), time.Millisecond // more than an int64 of nanoseconds
	if p := compute(t, in); p.Elected.Total != Year || p.Elected.Availability != 0 || p.One.Total != Year {
		t.Errorf("%+v", p.Elected)
	}
}

// A TTL of 0, which is a default elsewhere, would make takeovers take less than no time.
func TestPlanWithoutATTL(t *testing.T) {
	if timing, err := Library(0); err == nil || !strings.Contains(err.Error(), "TTL 0s: want 10ms") {
		t.Errorf("%+v, %v", timing, err)
	}
	in := base()
	in.Timing = Timing{}
	if p, err := Compute(in); err == nil || !strings.Contains(err.Error(), "want renewals before the leader stops") {
		t.Errorf("%+v, %v", p.Takeover, err)
	}
}

func TestRates(t *testing.T) {
	for s, perYear := range map[string]float64{
		"1/day": 365, "2/year": 2, " 0.5 / month ": 6, "1/36h": 365 * 24 / 36.0, "3/week": 3 * 365 / 7.0, "0": 0, "0/day": 0, "1e2/hour": 876000,
	} {
		if r, err := ParseRate(s); err != nil || math.Abs(r.PerYear()-perYear) > 1e-9*perYear {
			t.Errorf("%q: %v a year, %v; want %v", s, r.PerYear(), err, perYear)
		}
	}
	for _, s := range []string{"", "1", "x/day", "-1/day", "NaN/day", "Inf/day", "1/", "1/days", "1/0s", "1/-1h", "1e308/second"} {
		if r, err := ParseRate(s); err == nil || !strings.Contains(err.Error(), `"`+s+`"`) {
			t.Errorf("%q: %v, %v", s, r, err)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Microsecond: "0s", 12 * time.Millisecond: "12ms", 17167 * time.Millisecond: "17.2s", 10 * time.Minute: "10m",
		70 * time.Second: "1m10s", 2 * time.Hour: "2h", 70 * time.Minute: "1h10m", 10 * time.Hour: "10h", 292 * time.Hour: "12d4h", 10 * day: "10d",
	} {
		if got := Short(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestAdviceNamesTheReason(t *testing.T) {
	for want, set := range map[string]func(*Input){
		"since they stop when the store does": func(in *Input) { in.Outages, in.Crashes = rate(t, "1/day"), rate(t, "1/week") },
		"compare again with --crash-releases": func(in *Input) { in.Crashes = rate(t, "1/day") },
		"only, for 51840 writes a day":        func(in *Input) { in.Crashes, in.Restart = rate(t, "1/month"), 15*time.Second },
		"nothing that is counted here":        func(in *Input) { in.Outages = rate(t, "1/day") },
		"is no replica up: add replicas": func(in *Input) {
			in.Machines, in.Detect, in.Replicas = rate(t, "1/day"), 8*time.Hour, 2
		},
		"is store outages: a longer TTL": func(in *Input) { in.Deploys, in.Outages = rate(t, "1/day"), rate(t, "2/year") },
	} {
		in := base()
		set(&in)
		if got := compute(t, in).Advice(); !strings.Contains(got, want) {
			t.Errorf("want %q in: %s", want, got)
		}
	}
}
