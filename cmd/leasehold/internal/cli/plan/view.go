package plan

import (
	"math"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/plan"
)

// planView is what plan says in JSON.
type planView struct {
	Input    planInput `json:"input"`
	Validity float64   `json:"validity_seconds"`
	Renew    float64   `json:"renewal_seconds"`
	Stops    float64   `json:"stop_seconds"` // after the last renewal
	Survives float64   `json:"survives_outage_seconds"`
	Takeover planRange `json:"takeover"`
	Handover planRange `json:"handover"`
	One      planSide  `json:"one"`
	Elected  planSide  `json:"elected"`
	Advice   string    `json:"advice"`
}

type planInput struct {
	Crashes       string  `json:"crashes"`
	Restart       float64 `json:"restart_seconds"`
	Machines      string  `json:"machine_failures"`
	Detect        float64 `json:"detect_seconds"`
	Deploys       string  `json:"deployments"`
	Deploy        float64 `json:"deployment_seconds"`
	Outages       string  `json:"outages"`
	Outage        float64 `json:"outage_seconds"`
	Replicas      int     `json:"replicas"`
	TTL           float64 `json:"ttl_seconds"`
	Poll          float64 `json:"poll_seconds"`
	WarmUp        float64 `json:"warm_up_seconds"`
	CrashReleases bool    `json:"crash_releases"`
	Under         string  `json:"under"` // what keeps the lease: run, elect or library
}

type planRange struct {
	Least float64 `json:"least_seconds"`
	Mean  float64 `json:"mean_seconds"`
	Most  float64 `json:"most_seconds"`
}

type planSide struct {
	Crashes      float64  `json:"crashes_seconds"`
	Machines     float64  `json:"machine_failures_seconds"`
	Deploys      float64  `json:"deployments_seconds"`
	Outages      float64  `json:"outages_seconds"`
	NoneUp       float64  `json:"none_up_seconds"`
	Down         float64  `json:"down_seconds_a_year"`
	Availability float64  `json:"availability"`
	Nines        *int     `json:"nines,omitempty"` // absent when it is never down
	Writes       float64  `json:"writes_a_day"`
	Dollars      *float64 `json:"dollars_a_month,omitempty"`
}

func newPlanView(p plan.Plan, under string) planView {
	in, t := p.Input, p.Input.Timing
	return planView{
		Input: planInput{
			in.Crashes.String(), millis(in.Restart), in.Machines.String(), millis(in.Detect), in.Deploys.String(), millis(in.Deploy),
			in.Outages.String(), millis(in.Outage), in.Replicas, millis(t.TTL), millis(in.Poll), millis(in.WarmUp), in.CrashReleases, under,
		},
		Validity: millis(t.Validity), Renew: millis(t.Renew), Stops: millis(t.Stops), Survives: millis(t.Survives),
		Takeover: newPlanRange(p.Takeover), Handover: newPlanRange(p.Handover),
		One: newPlanSide(p.One), Elected: newPlanSide(p.Elected), Advice: p.Advice(),
	}
}

func newPlanRange(b plan.Bounds) planRange {
	return planRange{millis(b.Least), millis(b.Mean), millis(b.Most)}
}

func newPlanSide(s plan.Side) planSide {
	d := s.Down
	v := planSide{
		millis(d.Crashes), millis(d.Machines), millis(d.Deploys), millis(d.Outages), millis(d.NoneUp), millis(s.Total), s.Availability, nil,
		math.Round(s.WritesPerDay), nil,
	}
	if s.Nines >= 0 {
		v.Nines = &s.Nines
	}
	return v
}

// millis is a duration in seconds, to the millisecond.
func millis(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
