// Package plan computes what one instance of a program and a group of elected replicas are down for
// in a year, and why. It is arithmetic with means: every number is a sum of rates times gaps, and
// each formula stands beside its code.
//
// The letters, used all over: T is the TTL, R the time from one renewal to the next, S how long
// after its last renewal the leader stops, A the longest store outage that ends no term, P the
// longest time until a waiter learns of a change, W the time from being elected to working, N the
// number of replicas, Y a year. R, S and A are the caller's ([Timing]): a supervised command stops
// before a program that has the library does.
//
// It assumes that failures come at random and apart from each other, so that downtimes add up; that
// at least one other replica is up and waits when the leader goes (but for [Causes.NoneUp]); that a
// deployment replaces the replicas one by one and the leader last, or hands over to one that has
// been replaced; and that a request to the store takes no time.
package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold/leasehold/internal/protocol"
)

// Year is the Y of the formulas: 365 days.
const Year = 365 * 24 * time.Hour

const day = 24 * time.Hour

// Timing is how the lease of the leader is kept.
type Timing struct {
	TTL      time.Duration // T
	Renew    time.Duration // R
	Validity time.Duration // for how long others leave the lease alone, by the leader's clock
	// S: how long after its last renewal was sent the leader stops, Validity at most.
	Stops time.Duration
	// A: the longest store outage that ends no term, whenever it begins: S − R at most.
	Survives time.Duration
}

// Library is the timing of a program that has the library, with its default options. The TTL is 10
// ms to 366 days.
func Library(ttl time.Duration) (Timing, error) {
	t := protocol.Timing{TTL: ttl}.WithDefaults()
	t.TTL = ttl // 0 is a default elsewhere: here it would make takeovers take less than no time
	if err := t.Check(); err != nil {
		return Timing{}, err
	}
	return Timing{TTL: ttl, Renew: t.Renew, Validity: t.Validity(), Stops: t.Validity(), Survives: max(t.Survives(t.Validity()), 0)}, nil
}

// Input is what happens to each instance, and how election is timed.
type Input struct {
	Crashes  Rate          // of one instance, without a word to anybody
	Restart  time.Duration // from a crash until that instance works again
	Machines Rate          // failures of the machine of one instance
	Detect   time.Duration // from such a failure until another machine does its work
	Deploys  Rate
	Deploy   time.Duration // from when an instance stops for a deployment until the new one works
	Outages  Rate          // of the store
	Outage   time.Duration

	Replicas int    // that stand for election: 2 to 1000
	Timing   Timing // of the leader's lease
	// P: the pause between two looks at the store, or what its push takes.
	Poll          time.Duration
	WarmUp        time.Duration // W
	CrashReleases bool          // a crash releases the lease, since a supervisor outlives it
}

// Check returns an error that names what can't be computed with.
func (in Input) Check() error {
	if in.Replicas < 2 || in.Replicas > 1000 {
		return fmt.Errorf("%d replicas: want 2 to 1000", in.Replicas)
	}
	if t := in.Timing; t.Renew <= 0 || t.Stops < t.Renew || t.TTL < t.Stops || t.Survives < 0 || t.Survives > t.Stops-t.Renew {
		return fmt.Errorf("timing %+v: want renewals before the leader stops, and that before the TTL is over", t)
	}
	for _, d := range []struct {
		what string
		long time.Duration
	}{{"poll", in.Poll}, {"warm-up", in.WarmUp}} {
		if d.long < 0 || d.long > Year {
			return fmt.Errorf("%s %v: want 0 to a year", d.what, d.long)
		}
	}
	for _, c := range []struct {
		what string
		rate Rate
		long time.Duration
	}{
		{"crashes, restart", in.Crashes, in.Restart},
		{"machine failures, detection", in.Machines, in.Detect},
		{"deployments, deployment", in.Deploys, in.Deploy},
		{"outages, outage", in.Outages, in.Outage},
	} {
		switch {
		case c.long < 0 || c.long > Year:
			return fmt.Errorf("%s %v: want 0 to a year", c.what, c.long)
		case c.rate.PerYear()*float64(c.long) > float64(Year):
			return fmt.Errorf("%s: %v of %v each are more than all of the time; lower one of them", c.what, c.rate, c.long)
		}
	}
	return nil
}

// Bounds are the least, the mean and the most of a time.
type Bounds struct{ Least, Mean, Most time.Duration }

// Causes is the downtime of a year, cause by cause.
type Causes struct {
	Crashes  time.Duration
	Machines time.Duration
	Deploys  time.Duration
	Outages  time.Duration
	NoneUp   time.Duration // every replica was down at once
}

// Side is what one of the two ways comes to in a year.
type Side struct {
	Down         Causes
	Total        time.Duration // the sum of Down, Y at most
	Availability float64       // 1 − Total/Y
	Nines        int           // how many nines Availability begins with; -1 when it is never down
	WritesPerDay float64       // to the store
}

// Plan is the two ways side by side.
type Plan struct {
	Input    Input
	Takeover Bounds // from when a leader is gone without a word until the next one works
	Handover Bounds // from when a leader has stopped and let go until the next one works
	One      Side   // a single instance
	Elected  Side   // Input.Replicas of them, one of which leads
}

// Compute returns the plan. Its errors are those of [Input.Check].
func Compute(in Input) (Plan, error) {
	if err := in.Check(); err != nil {
		return Plan{}, err
	}
	p := Plan{Input: in}
	p.Takeover = takeover(in)
	p.Handover = handover(in)
	p.One = one(in).totalled()
	p.Elected = p.elected().totalled()
	p.Elected.WritesPerDay = p.writes()
	return p, nil
}

// takeover: the leader's last renewal was sent between R and nothing before it went, so R/2 on
// average. Who waits sees that renewal up to P later, counts T from there, takes the lease, and
// works after W.
//
//	least T − R + W        mean T − R/2 + P/2 + W        most T + P + W
func takeover(in Input) Bounds {
	ttl, renew := in.Timing.TTL, in.Timing.Renew
	return Bounds{ttl - renew + in.WarmUp, ttl - renew/2 + in.Poll/2 + in.WarmUp, ttl + in.Poll + in.WarmUp}
}

// handover: the lease is free, or already the successor's, which learns of it up to P later.
//
//	least W        mean P/2 + W        most P + W
func handover(in Input) Bounds {
	return Bounds{in.WarmUp, in.Poll/2 + in.WarmUp, in.Poll + in.WarmUp}
}

// one: each cause is its rate times its length. It needs no store, so the store's outages are
// nothing to it.
func one(in Input) Side {
	return Side{Down: Causes{
		Crashes:  in.Crashes.times(in.Restart),
		Machines: in.Machines.times(in.Detect),
		Deploys:  in.Deploys.times(in.Deploy),
	}}
}

// elected: only what happens to the leader stops the work. Its crashes and its machine's failures
// cost a mean takeover each (a crash that releases the lease a mean hand-over), deployments a mean
// hand-over.
//
// Nobody leads while all N are down: Y·uᴺ, where u = (crashes·restart + failures·detection)/Y is
// the share of the year that one replica is down for.
func (p Plan) elected() Side {
	in := p.Input
	crash := p.Takeover.Mean
	if in.CrashReleases {
		crash = p.Handover.Mean
	}
	u := float64(in.Crashes.times(in.Restart)+in.Machines.times(in.Detect)) / float64(Year)
	return Side{Down: Causes{
		Crashes:  in.Crashes.times(crash),
		Machines: in.Machines.times(p.Takeover.Mean),
		Deploys:  in.Deploys.times(p.Handover.Mean),
		Outages:  in.Outages.times(p.outage()),
		NoneUp:   time.Duration(float64(Year) * math.Pow(min(u, 1), float64(in.Replicas))),
	}}
}

// outage is the mean downtime of an outage of the store that lasts for O. When it begins, the
// leader's last renewal is U old, anything from 0 to R, all equally likely; the leader stops S − U
// later. The term ends with that, and also when the outage is over before, but too late for the
// next request: in the last S − R − A. Then nobody works until the store is back, a waiter or the
// old leader has noticed (P/2), and works (W):
//
//	E[max(0, O − (S − U))] + Prob[O > A + R − U]·(P/2 + W)
//
// The expectation is 0 up to S − R, (O−S+R)²/2R up to S, and O − S + R/2 beyond; the probability is
// 0 up to A, (O−A)/R up to A + R, and 1 beyond.
func (p Plan) outage() time.Duration {
	t := p.Input.Timing
	o, r, s := float64(p.Input.Outage), float64(t.Renew), float64(t.Stops)
	again := min(max((o-float64(t.Survives))/r, 0), 1) * float64(p.Handover.Mean)
	switch {
	case o <= s-r:
		return time.Duration(again)
	case o <= s:
		return time.Duration((o-s+r)*(o-s+r)/(2*r) + again)
	}
	return time.Duration(o - s + r/2 + again)
}

// Changes is how often the lease changes hands in a year: at crashes, machine failures and
// deployments, and at every outage that may end a term.
func (p Plan) Changes() float64 {
	n := p.Input.Crashes.PerYear() + p.Input.Machines.PerYear() + p.Input.Deploys.PerYear()
	if p.Input.Outage > p.Input.Timing.Survives {
		n += p.Input.Outages.PerYear()
	}
	return n
}

// writes a day: every replica's session is renewed each R, whoever leads, and a change of hands
// takes two writes (release or close the old session, and take).
//
//	N·day/R + 2·changes/365
func (p Plan) writes() float64 {
	return float64(p.Input.Replicas)*float64(day)/float64(p.Input.Timing.Renew) + 2*p.Changes()*float64(day)/float64(Year)
}

func (s Side) totalled() Side {
	c := s.Down
	s.Total = min(c.Crashes+c.Machines+c.Deploys+c.Outages+c.NoneUp, Year)
	s.Availability = 1 - float64(s.Total)/float64(Year)
	s.Nines = nines(s.Total)
	return s
}

// nines is how many nines the availability begins with: the largest n with down/Y ≤ 10⁻ⁿ.
func nines(down time.Duration) int {
	if down <= 0 {
		return -1
	}
	n, unit := 0, Year
	for unit /= 10; down <= unit; unit /= 10 {
		n++
	}
	return n
}
