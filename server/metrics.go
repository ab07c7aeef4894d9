package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// metrics are what Prometheus reads at /metrics. No label grows with the names: there is one series for all of them.
type metrics struct {
	s       *Server
	handler http.Handler

	requests    *prometheus.CounterVec
	transitions *prometheus.CounterVec
	lost        prometheus.Counter
	stale       prometheus.Counter
	renewals    prometheus.Histogram
	waits       prometheus.Histogram
	acquires    prometheus.Histogram
	releases    prometheus.Histogram
}

var (
	descHeld    = prometheus.NewDesc("leasehold_held", "Names by state: held, expired (its holder has not renewed it, as far as that is known), broken, handed over, free.", []string{"state"}, nil)
	descToken   = prometheus.NewDesc("leasehold_token", "The highest fencing token of all names.", nil, nil)
	descExpires = prometheus.NewDesc("leasehold_expires_seconds", "In how long the first of the holds ends that have not ended, unless it is renewed; absent when that is known of none.", nil, nil)
	descWaiters = prometheus.NewDesc("leasehold_waiters", "Requests that wait for a name at this server.", nil, nil)
	descUp      = prometheus.NewDesc("leasehold_store_up", "1 if the store answered this look, else 0: then the others above are absent.", nil, nil)
)

func newMetrics(s *Server) (*metrics, error) {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600}
	m := &metrics{
		s: s,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasehold_requests_total", Help: "Requests that were answered, by operation and outcome.",
		}, []string{"op", "outcome"}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasehold_transitions_total", Help: "Changes of ownership that this server made, or that were ordered here, by reason.",
		}, []string{"reason"}),
		lost:     prometheus.NewCounter(prometheus.CounterOpts{Name: "leasehold_lost_total", Help: "Renewals that came when the term was over."}),
		stale:    prometheus.NewCounter(prometheus.CounterOpts{Name: "leasehold_fenced_writes_total", Help: "Sequencers that were verified and found stale."}),
		renewals: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leasehold_renew_duration_seconds", Help: "How long renewals took.", Buckets: buckets}),
		acquires: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leasehold_acquire_duration_seconds", Help: "How long it took to acquire a name, with the wait for it.", Buckets: buckets}),
		releases: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leasehold_release_duration_seconds", Help: "How long releases took.", Buckets: buckets}),
		waits:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "leasehold_acquire_wait_seconds", Help: "How long who acquired a name had waited for it.", Buckets: buckets}),
	}
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "leasehold_build_info", Help: "1, and what is running.", ConstLabels: prometheus.Labels{"version": s.opts.Version},
	})
	build.Set(1)
	r.MustRegister(m, m.requests, m.transitions, m.lost, m.stale, m.renewals, m.waits, m.acquires, m.releases, build)
	for _, c := range s.opts.Collectors {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("server: Collectors: %w", err)
		}
	}
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return m, nil
}

// note counts a request that was answered.
func (m *metrics) note(e Event) {
	m.requests.WithLabelValues(e.Op, e.Outcome).Inc()
	done := e.Outcome == outcomeOK
	switch {
	case (e.Op == "renew" || e.Op == "renew session") && done:
		m.renewals.Observe(e.Duration.Seconds())
	case (e.Op == "renew" || e.Op == "renew session") && (e.Outcome == string(wire.CodeNotCurrent) || e.Outcome == string(wire.CodeBroken)):
		m.lost.Inc()
	case e.Op == "verify" && e.stale:
		m.stale.Inc()
	case e.Op == "acquire" && done:
		m.waits.Observe(e.Waited.Seconds())
		m.acquires.Observe(e.Duration.Seconds())
		m.transitions.WithLabelValues("acquired").Inc()
	case e.Op == "release" && done:
		m.releases.Observe(e.Duration.Seconds())
		m.transitions.WithLabelValues("released").Inc()
	case (e.Op == "break" || e.Op == "unlock" && e.Token != 0) && done:
		m.transitions.WithLabelValues("broken").Inc()
	case e.reason != "" && done:
		m.transitions.WithLabelValues(e.reason).Inc()
	}
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descHeld, descToken, descExpires, descWaiters, descUp} {
		c <- d
	}
}

// Collect implements [prometheus.Collector]. It looks at the store.
func (m *metrics) Collect(c chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descWaiters, float64(m.s.reg.QueuedInAll()))
	states := map[string]int{wire.StateHeld: 0, wire.StateBroken: 0, wire.StateHanded: 0, wire.StateFree: 0, stateExpired: 0}
	var highest float64
	first := time.Duration(-1)
	ctx, cancel := clock.WithTimeout(context.Background(), m.s.clk, readyLimit)
	defer cancel()
	for rec, err := range m.s.st.List(ctx, "") {
		if errors.Is(err, store.ErrCorrupt) {
			continue // one row that can't be read is not the store's end
		}
		if err != nil {
			gauge(descUp, 0)
			return
		}
		if lease.Reserved(rec.Key) {
			continue
		}
		s, left := state(rec), rec.TTL-rec.Age
		switch {
		case !expires(rec):
		case left > 0 && (first < 0 || left < first):
			first = left
		case left <= 0 && s == wire.StateHeld:
			s = stateExpired
		}
		states[s]++
		highest = max(highest, float64(rec.Token))
	}
	gauge(descUp, 1)
	for s, n := range states {
		gauge(descHeld, float64(n), strings.ReplaceAll(s, " ", "_"))
	}
	gauge(descToken, highest)
	if first >= 0 {
		gauge(descExpires, first.Seconds())
	}
}

// stateExpired is of a name that anyone may take, though nobody has yet.
const stateExpired = "expired"

// expires reports whether it is known when a hold ends.
func expires(rec store.Record) bool { return rec.Owner != "" && rec.Session == "" && rec.Age > 0 }
