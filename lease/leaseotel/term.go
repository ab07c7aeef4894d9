package leaseotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// term is one term that is followed.
type term struct {
	a     *acquisition
	token fence.Token
	began moment
	span  trace.Span
	ctx   context.Context // of the span
}

func (a *acquisition) begins(b lease.Beginning) lease.TermTrace {
	token := TokenKey.Int64(int64(b.Token))
	link, linked := linkTo(b.Before.Info)
	a.over("acquired", func(time.Time) {
		a.span.SetAttributes(token)
		if linked {
			a.span.AddLink(link)
		}
	})
	f := &term{a: a, token: b.Token, began: now(a.clk)}
	opts := []trace.SpanStartOption{trace.WithTimestamp(f.began.wall), trace.WithAttributes(a.attributes(token)...)}
	if linked {
		opts = append(opts, trace.WithLinks(link))
	}
	_, f.span = a.t.tracer.Start(a.ctx, "leasehold term", opts...)
	f.ctx = trace.ContextWithSpanContext(context.Background(), f.span.SpanContext())
	a.t.metrics.held.Add(f.ctx, 1, a.with())
	return lease.TermTrace{Event: f.event, Renewed: f.renewed, Leaves: f.leaves}
}

// event is called under the lease's lock.
func (f *term) event(e lease.Event) {
	at, _ := f.began.until(f.a.clk)
	var lost *lease.LostError
	switch e.State {
	case lease.StateReleased:
		f.ends(at, lease.CauseReleased, nil)
	case lease.StateLost:
		cause := lease.Cause("unknown")
		if errors.As(e.Err, &lost) {
			cause = lost.Cause
		}
		f.a.t.metrics.lost.Add(f.ctx, 1, f.a.with(CauseKey.String(string(cause))))
		f.ends(at, cause, e.Err)
	default:
		f.a.t.queue.put(func() {
			more := []attribute.KeyValue{LeftKey.Float64(e.Left.Seconds())}
			if e.Err != nil {
				more = append(more, attribute.String("exception.message", e.Err.Error()))
			}
			f.span.AddEvent(string(e.State), trace.WithTimestamp(at), trace.WithAttributes(more...))
		})
	}
}

func (f *term) ends(at time.Time, cause lease.Cause, err error) {
	f.a.t.metrics.held.Add(f.ctx, -1, f.a.with())
	f.a.t.queue.put(func() {
		f.span.SetAttributes(CauseKey.String(string(cause)))
		if err != nil {
			f.span.RecordError(err, trace.WithTimestamp(at))
			f.span.SetStatus(codes.Error, string(cause))
		}
		f.span.End(trace.WithTimestamp(at))
	})
}

func (f *term) renewed(r lease.Renewal) {
	outcome := "ok"
	if r.Err != nil {
		outcome = "error"
	}
	with := f.a.with(OutcomeKey.String(outcome))
	f.a.t.metrics.renewals.Add(f.ctx, 1, with)
	f.a.t.metrics.margin.Record(f.ctx, r.Left.Seconds(), with)
	if r.Err == nil && !f.a.t.eachRenewal {
		return
	}
	end, _ := f.began.until(f.a.clk)
	f.a.t.queue.put(func() {
		_, span := f.a.t.tracer.Start(f.ctx, "leasehold renew", trace.WithTimestamp(end.Add(-r.Took)), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(f.a.attributes(TokenKey.Int64(int64(f.token)), LeftKey.Float64(r.Left.Seconds()), OutcomeKey.String(outcome))...))
		fail(span, r.Err, end)
		span.End(trace.WithTimestamp(end))
	})
}

func (f *term) leaves(ctx context.Context, to string) (context.Context, func(error)) {
	name, more := "leasehold release", []attribute.KeyValue{TokenKey.Int64(int64(f.token))}
	if to != "" {
		name, more = "leasehold hand over", append(more, HolderKey.String(to))
	}
	began := now(f.a.clk)
	caller := trace.SpanContextFromContext(ctx)
	opts := []trace.SpanStartOption{trace.WithTimestamp(began.wall), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(f.a.attributes(more...)...)}
	if caller.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: caller, Attributes: []attribute.KeyValue{attribute.String("leasehold.link", "caller")}}))
	}
	ctx, span := f.a.t.tracer.Start(trace.ContextWithSpanContext(ctx, f.span.SpanContext()), name, opts...)
	return ctx, func(err error) {
		end, _ := began.until(f.a.clk)
		if to != "" {
			outcome := "ok"
			if err != nil {
				outcome = "error"
			}
			f.a.t.metrics.handovers.Add(f.ctx, 1, f.a.with(OutcomeKey.String(outcome)))
		}
		f.a.t.queue.put(func() {
			fail(span, err, end)
			span.End(trace.WithTimestamp(end))
		})
	}
}

// fail marks a span with an error, if there is one.
func fail(span trace.Span, err error, at time.Time) {
	if err == nil {
		return
	}
	span.RecordError(err, trace.WithTimestamp(at))
	span.SetStatus(codes.Error, err.Error())
}
