package main

import (
	"encoding/json"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// What `leasehold plan` says that a leader rides out is what the rules of what keeps its lease come to.
func TestFinding_I6_PlanHasTheTimingOfRun(t *testing.T) {
	for ttl, killAfter := range map[string]string{"20s": "2s", "8s": "800ms", "1h": "0s", "1s": "100ms"} {
		for _, under := range []string{"run", "elect"} {
			p := planned(t, "--under", under, "--ttl", ttl, "--kill-after", killAfter)
			d, err := time.ParseDuration(ttl)
			if err != nil {
				t.Fatal(err)
			}
			timing := supervise.Timing{TTL: d, KillAfter: -1}
			if killAfter != "0s" {
				if timing.KillAfter, err = time.ParseDuration(killAfter); err != nil {
					t.Fatal(err)
				}
			}
			timing = timing.WithDefaults()
			seconds := func(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
			want := []float64{seconds(timing.Validity()), seconds(timing.Renew()), seconds(timing.Stops()), seconds(timing.Survives())}
			if got := []float64{p.Validity, p.Renew, p.Stops, p.Survives}; !slices.Equal(got, want) {
				t.Errorf("%s, TTL %s, kill-after %s: plan says %v, and it does %v", under, ttl, killAfter, got, want)
			}
		}
	}
}

// timingOfPlan is what `plan -o json` says of the timing, in seconds.
type timingOfPlan struct {
	Validity float64 `json:"validity"`
	Renew    float64 `json:"renewal"`
	Stops    float64 `json:"stop"`
	Survives float64 `json:"survives_outage"`
}

func planned(t testing.TB, args ...string) (v timingOfPlan) {
	t.Helper()
	if err := json.Unmarshal([]byte(printed(t, append([]string{"plan", "-o", "json"}, args...))), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A real `run` lives through outages of the length that plan prints, which begin just before a renewal: one comes after four fifths of its
// time at the earliest.
func TestFinding_I6_RunRidesOutWhatPlanSays(t *testing.T) {
	stalltest.Run(t, func(t testing.TB) {
		p := planned(t, "--ttl", "8s")
		seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		place := newPlace(t)
		run := place.start("run", "--ttl", "8s", "job", "--", "ticker", "ticks")
		place.ticked("ticks")
		reader := place.reader()
		for range 3 {
			rec, _ := reader.record("job")
			eventually(t, "it is renewed", func() bool { next, _ := reader.record("job"); return next.Version != rec.Version })
			time.Sleep(supervise.Timing{TTL: 8 * time.Second}.Renew() * 78 / 100)
			restore := place.cutOff()
			time.Sleep(seconds(p.Survives) - 100*time.Millisecond) // for the requests themselves, and this test's own
			restore()
		}
		time.Sleep(seconds(p.Stops))
		select {
		case <-run.ended:
			t.Errorf("it has ended: %s", run.stderr)
		default:
		}
		run.signal(syscall.SIGTERM)
		run.code()
	})
}
