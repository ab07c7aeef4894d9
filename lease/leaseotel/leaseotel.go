package leaseotel

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
)

// Scope is the name of the tracer and of the meter.
const Scope = "github.com/leasehold/leasehold/lease/leaseotel"

// MaxNames bounds how many names metrics tell apart: further ones are [OtherName].
const MaxNames = 100

// OtherName stands in metrics for the names after the first [MaxNames].
const OtherName = "_other"

// Config says where telemetry goes. The zero value is right for most programs.
type Config struct {
	// TracerProvider makes the spans; nil for the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics; nil for the global one.
	MeterProvider metric.MeterProvider

	// MetricName, if set, returns the attribute leasehold.lease.name that metrics have for a name;
	// "" leaves it out. Metrics tell at most [MaxNames] results apart, the rest is [OtherName]. It
	// is called once for each acquisition of a name, and must not block. Without it no metric has
	// the attribute: each name would be several time series.
	MetricName func(name string) string

	// EachRenewal adds a span for each renewal that succeeds. A lease of 15 s has 17,000 a day.
	EachRenewal bool
}

// Telemetry makes the hooks of managers. It is safe for concurrent use.
type Telemetry struct {
	tracer      trace.Tracer
	metrics     instruments
	metricName  func(string) string
	eachRenewal bool
	queue       queue

	mu    sync.Mutex
	names map[string]struct{} // that metrics tell apart
}

// New returns the telemetry of a program. It does no I/O. An error says which metric the meter
// refused.
func New(c Config) (*Telemetry, error) {
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{
		tracer: c.TracerProvider.Tracer(Scope), metricName: c.MetricName, eachRenewal: c.EachRenewal,
		names: map[string]struct{}{},
	}
	var err error
	if t.metrics, err = newInstruments(c.MeterProvider.Meter(Scope)); err != nil {
		return nil, fmt.Errorf("leaseotel: %w", err)
	}
	t.queue.dropped = t.metrics.dropped
	return t, nil
}

// Options returns o with the hooks of t, for any number of managers. They take the place of
// o.Trace. All other hooks stay o's.
func (t *Telemetry) Options(o lease.Options) lease.Options {
	clk := o.Clock
	if clk == nil {
		clk = clock.System()
	}
	o.Trace = t.trace(clk)
	return o
}

// common returns the attributes of all metrics about a name.
func (t *Telemetry) common(a lease.Acquisition) []attribute.KeyValue {
	all := []attribute.KeyValue{KindKey.String(kind(a))}
	if t.metricName == nil || a.Session {
		return all
	}
	if name := t.metricName(a.Name); name != "" {
		all = append(all, NameKey.String(t.bounded(name)))
	}
	return all
}

// bounded returns name while metrics still tell further names apart.
func (t *Telemetry) bounded(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.names[name]; known {
		return name
	}
	if len(t.names) >= MaxNames {
		return OtherName
	}
	t.names[name] = struct{}{}
	return name
}

func kind(a lease.Acquisition) string {
	if a.Session {
		return "session"
	}
	return string(a.Kind)
}
