package leaseotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/leaseotel"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// process is one program with telemetry of its own.
type process struct {
	*lease.Manager
	t       *testing.T
	tel     *leaseotel.Telemetry
	spans   *tracetest.SpanRecorder
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	outage  *faulty.Outage
}

type world struct {
	t   *testing.T
	clk *clocktest.Clock
	db  *memory.DB
}

// inWorld runs f in virtual time, over one store.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		f(t, &world{t, clk, memory.NewDB(memory.Options{Clock: clk})})
	})
}

func (w *world) process(c leaseotel.Config, o lease.Options) *process {
	w.t.Helper()
	p := &process{t: w.t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(), outage: &faulty.Outage{}}
	if c.TracerProvider == nil {
		p.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans))
		c.TracerProvider = p.tracers
	}
	c.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))
	var err error
	if p.tel, err = leaseotel.New(c); err != nil {
		w.t.Fatal(err)
	}
	st := faulty.Wrap(w.db.Open(), p.outage.Plan(nil))
	o.Clock, o.TTL = w.clk, ttl
	if p.Manager, err = lease.NewManager(st, p.tel.Options(o)); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.Close(); _ = st.Close() })
	return p
}

func (p *process) acquire(name string) *lease.Lease {
	p.t.Helper()
	l, err := p.Acquire(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// ended returns the spans that were ended, once the queue is empty.
func (p *process) ended(name string) (all []sdktrace.ReadOnlySpan) {
	p.t.Helper()
	if err := p.tel.Flush(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	for _, s := range p.spans.Ended() {
		if s.Name() == "leasehold "+name {
			all = append(all, s)
		}
	}
	return all
}

// one is ended for a span of which there has to be one.
func (p *process) one(name string) sdktrace.ReadOnlySpan {
	p.t.Helper()
	all := p.ended(name)
	if len(all) != 1 {
		p.t.Fatalf("%d spans %q, want 1", len(all), name)
	}
	return all[0]
}

// unended returns how many spans were started and not ended.
func (p *process) unended() int {
	_ = p.tel.Flush(p.t.Context())
	return len(p.spans.Started()) - len(p.spans.Ended())
}

func attr(all []attribute.KeyValue, key attribute.Key) string {
	for _, kv := range all {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// metric returns the data points of a metric as "attributes=value", a histogram's value as its count.
func (p *process) metric(name string) map[string]float64 {
	p.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := p.reader.Collect(context.Background(), &rm); err != nil {
		p.t.Fatal(err)
	}
	got := map[string]float64{}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if m.Name != name {
				continue
			}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, dp := range d.DataPoints {
					got[shown(dp.Attributes)] += float64(dp.Value)
				}
			case metricdata.Histogram[float64]:
				for _, dp := range d.DataPoints {
					got[shown(dp.Attributes)] += float64(dp.Count)
				}
			}
		}
	}
	return got
}

func shown(set attribute.Set) string {
	var all []string
	for _, kv := range set.ToSlice() {
		all = append(all, strings.TrimPrefix(string(kv.Key), "leasehold.lease.")+"="+kv.Value.String())
	}
	return strings.Join(all, " ")
}

func (p *process) wantMetric(name, attributes string, want float64) {
	p.t.Helper()
	if got := p.metric(name); got[attributes] != want {
		p.t.Errorf("%s{%s} = %v, want %v", name, attributes, got, want)
	}
}

// One waits for another, takes over after the release, and releases: the spans, their order and lengths, and the link from
// the second term to the first, across processes and over a free record.
func TestATermLinksToTheOneBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(leaseotel.Config{}, lease.Options{}), w.process(leaseotel.Config{}, lease.Options{})
		first := a.acquire("job")
		go func() {
			time.Sleep(time.Minute)
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		ctx, caller := b.tracers.Tracer("test").Start(t.Context(), "caller")
		second, err := b.Acquire(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		caller.End()
		if err := second.Release(ctx); err != nil {
			t.Fatal(err)
		}
		acquired, took := a.one("acquire"), b.one("acquire")
		if got := took.EndTime().Sub(took.StartTime()).Round(time.Second); got != time.Minute {
			t.Errorf("the acquisition took %v", got)
		}
		if took.Parent().SpanID() != caller.SpanContext().SpanID() {
			t.Error("the acquisition isn't in the caller's span")
		}
		term, wait := b.one("term"), b.one("wait")
		for name, s := range map[string]sdktrace.ReadOnlySpan{"term": term, "wait": wait} {
			if s.Parent().SpanID() != took.SpanContext().SpanID() || attr(s.Attributes(), leaseotel.NameKey) != "job" {
				t.Errorf("%s: below %v, %v", name, s.Parent(), s.Attributes())
			}
		}
		if got := attr(wait.Attributes(), leaseotel.HolderKey); got != a.Holder() {
			t.Errorf("waits for %q, want %q", got, a.Holder())
		}
		for name, s := range map[string]sdktrace.ReadOnlySpan{"term": term, "acquire": took} {
			if len(s.Links()) != 1 || s.Links()[0].SpanContext.SpanID() != acquired.SpanContext().SpanID() || s.Links()[0].SpanContext.TraceID() != acquired.SpanContext().TraceID() {
				t.Errorf("%s links to %+v, want %v", name, s.Links(), acquired.SpanContext())
			}
		}
		if got := attr(term.Attributes(), leaseotel.TokenKey); got != fmt.Sprint(second.Token()) || term.Status().Code != codes.Unset || attr(term.Attributes(), leaseotel.CauseKey) != "released" {
			t.Errorf("term: %v, %v", term.Attributes(), term.Status())
		}
		release := b.one("release")
		if release.Parent().SpanID() != term.SpanContext().SpanID() || len(release.Links()) != 1 || release.Links()[0].SpanContext.SpanID() != caller.SpanContext().SpanID() {
			t.Errorf("release below %v, links %v", release.Parent(), release.Links())
		}
		if len(a.one("term").Links()) != 0 {
			t.Error("the first term links to one before")
		}
		b.wantMetric("leasehold.lease.acquire.duration", "kind=lease outcome=acquired", 1)
		b.wantMetric("leasehold.lease.wait.duration", "kind=lease outcome=acquired", 1)
		a.wantMetric("leasehold.lease.held", "kind=lease", 0)
		if renewals := a.metric("leasehold.lease.renewals")["kind=lease outcome=ok"]; renewals < 11 || renewals > 16 {
			t.Errorf("%v renewals in a minute", renewals)
		}
		if n := a.unended() + b.unended(); n != 0 {
			t.Errorf("%d spans were not ended", n)
		}
	})
}

// A hand-over, and a term that a session keeps, whose release has to know the trace: the successor links to it all the same.
func TestAHandOverIsFollowed(t *testing.T) {
	for _, session := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.process(leaseotel.Config{}, lease.Options{}), w.process(leaseotel.Config{}, lease.Options{})
			take := a.Acquire
			if session {
				s, err := a.OpenSession(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close(context.Background()) }()
				take = s.Acquire
			}
			first, err := take(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan *lease.Lease, 1)
			go func() {
				l, err := b.Acquire(t.Context(), "job")
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			synctest.Wait()
			if err := first.HandOver(t.Context(), b.Holder()); err != nil {
				t.Fatal(err)
			}
			second := <-got
			a.wantMetric("leasehold.lease.handovers", "kind=lease outcome=ok", 1)
			if to := attr(a.one("hand over").Attributes(), leaseotel.HolderKey); to != b.Holder() {
				t.Errorf("handed over to %q", to)
			}
			_ = second.Release(t.Context())
			acquired := a.ended("acquire")[len(a.ended("acquire"))-1]
			if links := b.one("term").Links(); len(links) != 1 || links[0].SpanContext.SpanID() != acquired.SpanContext().SpanID() {
				t.Errorf("session %v: the successor's term links to %+v", session, links)
			}
		})
	}
}

// A lost lease ends its span with an error and the cause; renewals that failed have spans, and jeopardy is an event.
func TestALostTermHasItsCause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(leaseotel.Config{}, lease.Options{})
		l := p.acquire("job")
		p.outage.StartRefusing(errors.New("connection refused"))
		<-l.Context().Done()
		term := p.one("term")
		if term.Status().Code != codes.Error || term.Status().Description != string(lease.CauseOutage) || attr(term.Attributes(), leaseotel.CauseKey) != "store outage" {
			t.Errorf("status %+v, %v", term.Status(), term.Attributes())
		}
		var events []string
		for _, e := range term.Events() {
			events = append(events, e.Name)
		}
		if got := strings.Join(events, " "); got != "held jeopardy exception" {
			t.Errorf("events %q", got)
		}
		if lasted := term.EndTime().Sub(term.StartTime()); lasted.Round(time.Millisecond) > 12*time.Second {
			t.Errorf("the span lasted %v, longer than the validity of 12 s", lasted)
		}
		p.wantMetric("leasehold.lease.lost", "cause=store outage kind=lease", 1)
		p.wantMetric("leasehold.lease.held", "kind=lease", 0)
		if failed := p.ended("renew"); len(failed) == 0 || failed[0].Status().Code != codes.Error {
			t.Errorf("%d spans of failed renewals", len(failed))
		}
		if n := p.metric("leasehold.lease.renewals")["kind=lease outcome=error"]; n == 0 {
			t.Error("no failed renewal is counted")
		}
	})
}

// Whatever an acquisition comes to, its span ends, and says what. A manager that is closed ends the spans of what it held.
func TestNoSpanLeaks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder, p := w.process(leaseotel.Config{}, lease.Options{}), w.process(leaseotel.Config{}, lease.Options{})
		holder.acquire("job")
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		if _, err := p.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := p.TryAcquire(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
			t.Fatal(err)
		}
		p.outage.StartRefusing(errors.New("connection refused"))
		if _, err := p.TryAcquire(t.Context(), "other"); err == nil {
			t.Fatal("acquired in an outage")
		}
		p.outage.End()
		p.wantMetric("leasehold.lease.acquire.duration", "kind=lease outcome=cancelled", 1)
		p.wantMetric("leasehold.lease.acquire.duration", "kind=lease outcome=held", 1)
		p.wantMetric("leasehold.lease.acquire.duration", "kind=lease outcome=error", 1)
		p.wantMetric("leasehold.lease.wait.duration", "kind=lease outcome=cancelled", 1)

		s, err := p.OpenSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if _, err := s.Acquire(t.Context(), fmt.Sprint("name-", i)); err != nil {
				t.Fatal(err)
			}
		}
		p.acquire("another")
		p.wantMetric("leasehold.lease.held", "kind=lease", 101)
		p.wantMetric("leasehold.lease.held", "kind=session", 1)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if n := p.unended(); n != 0 {
			t.Errorf("%d spans were not ended", n)
		}
		p.wantMetric("leasehold.lease.held", "kind=lease", 0)
		p.wantMetric("leasehold.lease.held", "kind=session", 0)
		p.wantMetric("leasehold.lease.lost", "cause=closed kind=lease", 101)
	})
}

// hung is a span processor whose exporter hangs in the end of the first span.
type hung struct {
	sdktrace.SpanProcessor
	release chan struct{}
}

func (h hung) OnEnd(sdktrace.ReadOnlySpan) { <-h.release }

// A storm of events behind an exporter that hangs: acquisitions, renewals and releases keep their pace, what doesn't fit is
// dropped and counted, and memory has a bound.
func TestAnExporterThatHangsDelaysNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		exporter := hung{tracetest.NewSpanRecorder(), make(chan struct{})}
		p := w.process(leaseotel.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(exporter)), EachRenewal: true}, lease.Options{})
		kept := p.acquire("kept")
		began := w.clk.Now()
		for i := range leaseotel.MaxQueue {
			l := p.acquire(fmt.Sprint("name-", i%7))
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := w.clk.Now().Sub(began); took > 0 {
			t.Errorf("%d terms took %v", leaseotel.MaxQueue, took)
		}
		time.Sleep(10 * time.Minute)
		if err := kept.Check(); err != nil {
			t.Error(err)
		}
		if ok := p.metric("leasehold.lease.renewals")["kind=lease outcome=ok"]; ok < 100 {
			t.Errorf("%v renewals in 10 minutes", ok)
		}
		if dropped := p.metric("leasehold.telemetry.dropped")[""]; dropped < leaseotel.MaxQueue {
			t.Errorf("%v spans were dropped", dropped)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.tel.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		close(exporter.release)
		if err := p.tel.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// No metric has a name unless that is asked for, and then a bounded number of names.
func TestNamesAreBounded(t *testing.T) {
	for _, named := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			c, want := leaseotel.Config{}, 1
			if named {
				c.MetricName, want = func(name string) string { return name }, leaseotel.MaxNames+1
			}
			p := w.process(c, lease.Options{})
			for i := range 1000 {
				if err := p.acquire(fmt.Sprint("order-", i)).Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, metric := range []string{"leasehold.lease.held", "leasehold.lease.acquire.duration"} {
				if got := p.metric(metric); len(got) != want {
					t.Errorf("named %v: %d time series of %s, want %d", named, len(got), metric, want)
				}
			}
			if named {
				p.wantMetric("leasehold.lease.acquire.duration", "kind=lease name=_other outcome=acquired", 1000-leaseotel.MaxNames)
				p.wantMetric("leasehold.lease.acquire.duration", "kind=lease name=order-0 outcome=acquired", 1)
			}
		})
	}
}

// The global providers do nothing unless the program sets them, and a lease works as ever.
func TestWithoutProviders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tel, err := leaseotel.New(leaseotel.Config{})
		if err != nil {
			t.Fatal(err)
		}
		st := w.db.Open()
		defer st.Close()
		m, err := lease.NewManager(st, tel.Options(lease.Options{Clock: w.clk}))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		l, err := m.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		rec, err := st.Get(t.Context(), "job")
		if _, there := rec.Info[store.InfoTraceParent]; err != nil || there {
			t.Errorf("info %v, %v", rec.Info, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// What another program left as a trace parent is no link, whatever it is, and is not kept in the record of a free name when
// it is long.
func TestAForeignTraceParent(t *testing.T) {
	for _, parent := range []string{"", "nonsense", "00-0-0-00", strings.Repeat("x", 5000), "00-00000000000000000000000000000000-0000000000000000-01"} {
		inWorld(t, func(t *testing.T, w *world) {
			st := w.db.Open()
			defer st.Close()
			m, err := lease.NewManager(st, lease.Options{Clock: w.clk, Info: map[string]string{store.InfoTraceParent: parent}})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			l, err := m.Acquire(t.Context(), "job")
			if err == nil {
				err = l.Release(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec, err := st.Get(t.Context(), "job"); err != nil || len(rec.Info[store.InfoTraceParent]) > 128 {
				t.Errorf("the free record keeps %d bytes, %v", len(rec.Info[store.InfoTraceParent]), err)
			}
			p := w.process(leaseotel.Config{}, lease.Options{})
			_ = p.acquire("job").Release(t.Context())
			if links := p.one("term").Links(); len(links) != 0 {
				t.Errorf("%.20q: links to %+v", parent, links)
			}
		})
	}
}

// Each renewal has a span if that is asked for.
func TestEachRenewal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(leaseotel.Config{EachRenewal: true}, lease.Options{})
		l := p.acquire("job")
		time.Sleep(time.Minute)
		renewals := p.ended("renew")
		if n := len(renewals); n < 11 || n > 16 || renewals[0].Parent().TraceID() != p.one("acquire").SpanContext().TraceID() {
			t.Errorf("%d spans of renewals in a minute", n)
		}
		_ = l.Release(t.Context())
	})
}
