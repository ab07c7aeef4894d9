package leaseotel

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The attributes of spans and metrics.
const (
	NameKey  = attribute.Key("leasehold.lease.name")
	KindKey  = attribute.Key("leasehold.lease.kind")
	TokenKey = attribute.Key("leasehold.lease.token")
	// Whom the acquisition waits for, or hands over to.
	HolderKey  = attribute.Key("leasehold.lease.holder")
	CauseKey   = attribute.Key("leasehold.lease.cause") // why a term ended
	OutcomeKey = attribute.Key("leasehold.lease.outcome")
	LeftKey    = attribute.Key("leasehold.lease.left") // seconds of validity
	TryKey     = attribute.Key("leasehold.lease.try")  // the caller didn't wait
)

// instruments are the metrics.
type instruments struct {
	held      metric.Int64UpDownCounter
	acquire   metric.Float64Histogram
	wait      metric.Float64Histogram
	renewals  metric.Int64Counter
	margin    metric.Float64Histogram
	lost      metric.Int64Counter
	handovers metric.Int64Counter
	dropped   metric.Int64Counter
}

// seconds are the bounds of histograms: from a local store to a wait of hours.
var seconds = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60, 300, 1800, 3600}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [8]error
	bounds := metric.WithExplicitBucketBoundaries(seconds...)
	i.held, errs[0] = m.Int64UpDownCounter("leasehold.lease.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that are held now."))
	i.acquire, errs[1] = m.Float64Histogram("leasehold.lease.acquire.duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("Time from the call of Acquire to its return."))
	i.wait, errs[2] = m.Float64Histogram("leasehold.lease.wait.duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("Time for which an acquisition waited for a holder."))
	i.renewals, errs[3] = m.Int64Counter("leasehold.lease.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals, by outcome."))
	i.margin, errs[4] = m.Float64Histogram("leasehold.lease.renewal.margin", metric.WithUnit("s"), bounds,
		metric.WithDescription("Validity that was left when a renewal was answered."))
	i.lost, errs[5] = m.Int64Counter("leasehold.lease.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that ended without a release, by cause."))
	i.handovers, errs[6] = m.Int64Counter("leasehold.lease.handovers", metric.WithUnit("{handover}"),
		metric.WithDescription("Hand-overs by the holder, by outcome."))
	i.dropped, errs[7] = m.Int64Counter("leasehold.telemetry.dropped", metric.WithUnit("{span}"),
		metric.WithDescription("Spans dropped because the span processor hung or was slow."))
	return i, errors.Join(errs[:]...)
}
