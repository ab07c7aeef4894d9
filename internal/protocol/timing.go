package protocol

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// The defaults. A TTL of 15 s and a renewal every third of it are client-go's proportions; the
// margin covers clocks whose rates are each off by 11 % (time daemons slew by up to 8.33 %).
const (
	DefaultTTL    = 15 * time.Second
	DefaultMargin = 0.2
	DefaultDrift  = 0.11
)

// Timing is how a hold is timed. The zero value of a field means its default.
type Timing struct {
	TTL    time.Duration // how long a record lasts past its last renewal
	Margin float64       // δ: the share of TTL that the holder leaves unused
	Drift  float64       // ρ: the bound on a clock rate's error that Margin has to cover
	Renew  time.Duration // from one renewal to the next; TTL/3
	// How long a renewal waits for its answer before it is sent once more beside; TTL/20, at least
	// 100 ms where that fits.
	Attempt time.Duration
}

// WithDefaults returns t with its zero fields filled in.
func (t Timing) WithDefaults() Timing {
	if t.TTL == 0 {
		t.TTL = DefaultTTL
	}
	if t.Margin == 0 {
		t.Margin = DefaultMargin
	}
	if t.Drift == 0 {
		t.Drift = DefaultDrift
	}
	if t.Renew == 0 {
		t.Renew = t.TTL / 3
	}
	if t.Attempt == 0 {
		t.Attempt = max(t.TTL/20, min(t.TTL/10, 100*time.Millisecond))
	}
	return t
}

// Validity is how long a hold is valid from before its last renewal was sent: TTL·(1−δ), less the
// resolution of the clock.
func (t Timing) Validity() time.Duration { return t.validity(clock.Resolution) }

// Answer is how long a request that takes a name may take. It is more than half of the validity: a
// store that always answers later than that can't be renewed in time, since each renewal needs the
// answer to the one before.
func (t Timing) Answer() time.Duration { return max(t.Renew, t.Validity()/2+t.Attempt) }

// claiming has a request of a claim, which is asked for now, given up when its answer would come
// too late to keep the name. It is sent once more after the time between two renewals.
func (t Timing) claiming(act Action, now clock.Instant) Action {
	act.Until = now.Add(t.Answer())
	return act.Repeated(now, t.Renew)
}

// read returns the read of a key that a claim needs.
func (t Timing) read(key string, now clock.Instant) Action {
	return t.claiming(Action{Kind: Read, Key: key}, now)
}

// Repeated has a request that is asked for now repeated after that time, if it isn't given up
// before.
func (act Action) Repeated(now clock.Instant, after time.Duration) Action {
	if t := now.Add(after); t < act.Until {
		act.Asked, act.Again = now, t
	}
	return act
}

// Survives is the longest outage of the store, whenever it begins, after which a renewal still
// comes within that time of the one before, if a request takes no time. At worst the outage begins
// with a renewal, and ends just after a request was sent that gets no answer: then come the longest
// pause between two retries (half as long again as an attempt), and the next request.
func (t Timing) Survives(within time.Duration) time.Duration {
	return within - t.Renew - t.Attempt - t.Attempt*3/2
}

// validity subtracts what a reading may be late by: the holder compares a reading with one from
// before, which was not late.
func (t Timing) validity(resolution time.Duration) time.Duration {
	// Rounded down: never a nanosecond more.
	return t.TTL - time.Duration(math.Ceil(float64(t.TTL)*t.Margin)) - resolution
}

// LeastMargin returns the least share of the TTL that a holder has to leave unused when the rates
// of the clocks involved are each off by at most rho (0.01 is 1 %): 2ρ/(1+ρ). It follows from
// holder and taker at their worst: the holder's clock slow, so that TTL·(1−δ) takes TTL·(1−δ)/(1−ρ)
// of true time, the taker's fast, so that TTL takes TTL/(1+ρ).
func LeastMargin(rho float64) float64 { return 2 * rho / (1 + rho) }

// Check returns an error that shows the arithmetic when a hold with these timings would be unsafe,
// or could not be kept.
func (t Timing) Check() error {
	if t.TTL < store.MinTTL || t.TTL > store.MaxTTL {
		return fmt.Errorf("TTL %v: want %v to %v", t.TTL, store.MinTTL, store.MaxTTL)
	}
	if !(t.Drift > 0 && t.Drift < 1) { // so written that NaN is refused too
		return fmt.Errorf("drift %v: want the bound on a clock rate's error, above 0 and below 1 (0.11 is 11 %%)", t.Drift)
	}
	if !(t.Margin > 0 && t.Margin < 1) {
		return fmt.Errorf("margin %v: want a share of the TTL, above 0 and below 1", t.Margin)
	}
	// A little slack, so that a margin computed by the same formula isn't refused for its last bit.
	if least := LeastMargin(t.Drift); t.Margin < least-1e-9 {
		return fmt.Errorf("unsafe margin %v: clocks off by up to %.4g %% need at least 2·%v/(1+%v) = %.4g; "+
			"raise the margin, or lower the drift if your clocks are better than that",
			t.Margin, t.Drift*100, t.Drift, t.Drift, least)
	}
	if t.Renew <= 0 || t.Attempt <= 0 {
		return fmt.Errorf("renewal every %v, attempts of %v: want both above 0", t.Renew, t.Attempt)
	}
	if valid := t.Validity(); t.Renew+2*t.Attempt > valid {
		return fmt.Errorf("renewal every %v with attempts of %v is too late: a hold is valid for %v·(1−%v) = %v, "+
			"and a renewal and one retry need %v + 2·%v = %v; renew earlier or raise the TTL",
			t.Renew, t.Attempt, t.TTL, t.Margin, valid, t.Renew, t.Attempt, t.Renew+2*t.Attempt)
	}
	return nil
}

// retry returns the pause before the n-th retry in a row: from TTL/150 doubling to Attempt, so that
// a store that comes back is found at once.
func (t Timing) retry(n int) time.Duration {
	return min(max(t.TTL/150, time.Millisecond)<<min(n, 10), max(t.Attempt, time.Millisecond))
}
