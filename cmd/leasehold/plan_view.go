package main

import (
	"math"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/plan"
)

// planView is what plan says in JSON.
type planView struct {
	Input    planInput `json:"input"`
	Validity float64   `json:"validity"`
	Renew    float64   `json:"renewal"`
	Stops    float64   `json:"stop"` // after the last renewal
	Survives float64   `json:"survives_outage"`
	Takeover planRange `json:"takeover"`
	Handover planRange `json:"handover"`
	One      planSide  `json:"one"`
	Elected  planSide  `json:"elected"`
	Advice   string    `json:"advice"`
}

type planInput struct {
	Crashes       string  `json:"crashes"`
	Restart       float64 `json:"restart"`
	Machines      string  `json:"machine_failures"`
	Detect        float64 `json:"detect"`
	Deploys       string  `json:"deployments"`
	Deploy        float64 `json:"deployment"`
	Outages       string  `json:"outages"`
	Outage        float64 `json:"outage"`
	Replicas      int     `json:"replicas"`
	TTL           float64 `json:"ttl"`
	Poll          float64 `json:"poll"`
	WarmUp        float64 `json:"warm_up"`
	CrashReleases bool    `json:"crash_releases"`
	Under         string  `json:"under"` // what keeps the lease: run, elect or library
}

type planRange struct {
	Least float64 `json:"least"`
	Mean  float64 `json:"mean"`
	Most  float64 `json:"most"`
}

type planSide struct {
	Crashes      float64  `json:"crashes"`
	Machines     float64  `json:"machine_failures"`
	Deploys      float64  `json:"deployments"`
	Outages      float64  `json:"outages"`
	NoneUp       float64  `json:"none_up"`
	Down         float64  `json:"down_a_year"`
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
