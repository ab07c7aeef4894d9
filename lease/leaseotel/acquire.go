package leaseotel

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// maxHolders bounds the changes of the holder that a wait's span shows.
const maxHolders = 16

// moment is an instant by both clocks: one for lengths, one for people.
type moment struct {
	at   clock.Instant
	wall time.Time
}

func now(clk clock.Clock) moment { return moment{clk.Now(), clk.Wall()} }

// until returns the time at which a span ends that began at m: its length is the monotonic clock's.
func (m moment) until(clk clock.Clock) (wall time.Time, took time.Duration) {
	took = max(clk.Now().Sub(m.at), 0)
	return m.wall.Add(took), took
}

// acquisition is one acquisition that is followed. The hooks of one are called one after the other.
type acquisition struct {
	t      *Telemetry
	clk    clock.Clock
	what   lease.Acquisition
	common []attribute.KeyValue
	began  moment
	span   trace.Span
	ctx    context.Context // of the span, for those below it: it has no deadline

	waits   moment // since when it waits; the zero one before
	holders []change
	retries []change
}

// change is an event of a span, as it is told later.
type change struct {
	at   time.Time
	text string
}

func (t *Telemetry) trace(clk clock.Clock) *lease.Trace {
	return &lease.Trace{Acquire: func(ctx context.Context, what lease.Acquisition) (context.Context, lease.AcquireTrace) {
		a := &acquisition{t: t, clk: clk, what: what, common: t.common(what), began: now(clk)}
		ctx, a.span = t.tracer.Start(ctx, "leasehold acquire", trace.WithTimestamp(a.began.wall),
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(a.attributes(TryKey.Bool(what.Try))...))
		a.ctx = trace.ContextWithSpanContext(context.Background(), a.span.SpanContext())
		return ctx, lease.AcquireTrace{
			TraceParent: traceParent(a.ctx), Waits: a.waiting, Retries: a.retrying, Begins: a.begins, Fails: a.fails,
		}
	}}
}

// attributes are those of a span about the name.
func (a *acquisition) attributes(more ...attribute.KeyValue) []attribute.KeyValue {
	return append([]attribute.KeyValue{NameKey.String(a.what.Name), KindKey.String(kind(a.what))}, more...)
}

// with returns the attributes of a metric about the name.
func (a *acquisition) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(slices.Clone(a.common), more...)...)
}

func (a *acquisition) waiting(h *lease.HeldError) {
	if a.waits == (moment{}) {
		a.waits = now(a.clk)
	}
	if len(a.holders) < maxHolders {
		a.holders = append(a.holders, change{a.clk.Wall(), h.Holder})
	}
}

func (a *acquisition) retrying(err error) {
	if len(a.retries) < maxHolders {
		a.retries = append(a.retries, change{a.clk.Wall(), err.Error()})
	}
}

func (a *acquisition) fails(err error) {
	outcome := outcomeOf(err)
	a.over(outcome, func(end time.Time) {
		a.span.AddEvent("failed", trace.WithTimestamp(end), trace.WithAttributes(attribute.String("exception.message", err.Error())))
		if outcome != "held" && outcome != "cancelled" { // which are no faults
			a.span.SetStatus(codes.Error, outcome)
		}
	})
}

// outcomeOf returns the outcome of an acquisition that failed, as metrics tell it.
func outcomeOf(err error) string {
	switch {
	case errors.Is(err, store.ErrKind):
		return "kind"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	case errors.Is(err, lease.ErrHeld):
		return "held"
	}
	return "error"
}

// over ends the acquisition's spans, and measures it. more is done with its span before the end.
func (a *acquisition) over(outcome string, more func(end time.Time)) {
	end, took := a.began.until(a.clk)
	with := a.with(OutcomeKey.String(outcome))
	a.t.metrics.acquire.Record(a.ctx, took.Seconds(), with)
	if a.waits != (moment{}) {
		_, waited := a.waits.until(a.clk)
		a.t.metrics.wait.Record(a.ctx, waited.Seconds(), with)
	}
	a.t.queue.put(func() {
		if a.waits != (moment{}) {
			_, span := a.t.tracer.Start(a.ctx, "leasehold wait", trace.WithTimestamp(a.waits.wall),
				trace.WithAttributes(a.attributes(HolderKey.String(a.holders[0].text))...))
			for _, h := range a.holders[1:] {
				span.AddEvent("holder changed", trace.WithTimestamp(h.at), trace.WithAttributes(HolderKey.String(h.text)))
			}
			span.End(trace.WithTimestamp(end))
		}
		for _, r := range a.retries {
			a.span.AddEvent("retry", trace.WithTimestamp(r.at), trace.WithAttributes(attribute.String("exception.message", r.text)))
		}
		a.span.SetAttributes(OutcomeKey.String(outcome))
		more(end)
		a.span.End(trace.WithTimestamp(end))
	})
}

// traceParent returns the W3C traceparent of ctx's span; "" when it has none.
func traceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[store.InfoTraceParent]
}

// linkTo returns the link to the acquisition of the term before, as a record tells it. What is no
// traceparent is no link: any program may have written the record.
func linkTo(info map[string]string) (trace.Link, bool) {
	carrier := propagation.MapCarrier{store.InfoTraceParent: info[store.InfoTraceParent]}
	to := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	return trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("leasehold.link", "previous term")}}, to.IsValid()
}
