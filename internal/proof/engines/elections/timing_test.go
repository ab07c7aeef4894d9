package elections

import (
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
)

// timing is one as client-go's users write it.
type timing struct {
	name                 string
	lease, renew, period time.Duration // LeaseDuration, RenewDeadline, RetryPeriod
}

var timings = []timing{
	{"client-go's defaults", 15 * time.Second, 10 * time.Second, 2 * time.Second},
	{"patient, as OpenShift's", 137 * time.Second, 107 * time.Second, 26 * time.Second},
	{"long", 60 * time.Second, 40 * time.Second, 5 * time.Second},
	{"aggressive", 2 * time.Second, time.Second, 250 * time.Millisecond},
	{"deadline near the duration", 15 * time.Second, 14 * time.Second, 2 * time.Second},
	{"deadline at the duration", 15 * time.Second, 14900 * time.Millisecond, 2 * time.Second},
}

// margin is the share of the lease's duration after the deadline.
func (x timing) margin() float64 { return 1 - float64(x.renew)/float64(x.lease) }

// drift is the error of clock rates that the margin is just good for: 2ρ/(1+ρ) = margin.
func (x timing) drift() float64 { return x.margin() / (2 - x.margin()) }

// options are ours: the holder counts on the lease until the deadline.
func (x timing) options() lease.Options {
	return lease.Options{TTL: x.lease, Margin: x.margin(), Drift: x.drift(), Renew: x.period}
}

// stopMargin is how long before the end of validity a leader is told.
func (x timing) stopMargin() election.Options { return election.Options{StopMargin: x.lease / 20} }
