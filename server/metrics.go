package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/internal/api"
)

// metrics are what Prometheus reads at /metrics. No label grows with the names: there is one series
// for all of them.
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
	descHeld     = prometheus.NewDesc("leasehold_held", "Names by state: held, expired (its holder has not renewed it, as far as that is known), broken, handed over, free.", []string{"state"}, nil)
	descToken    = prometheus.NewDesc("leasehold_token", "The highest fencing token of all names.", nil, nil)
	descExpires  = prometheus.NewDesc("leasehold_expires_seconds", "In how long the first of the holds ends that have not ended, unless it is renewed; absent when that is known of none.", nil, nil)
	descWaiters  = prometheus.NewDesc("leasehold_waiters", "Requests that wait for a name at this server.", nil, nil)
	descWatchers = prometheus.NewDesc("leasehold_watchers", "Requests to /v1/watch that are served.", nil, nil)
	descEncoded  = prometheus.NewDesc("leasehold_watch_encoded_total", "States of names and sessions that were encoded, each once for all watchers.", nil, nil)
	descResets   = prometheus.NewDesc("leasehold_watch_resets_total", "Watchers that were told everything, since they had been told nothing, or had missed too much.", nil, nil)
	descSent     = prometheus.NewDesc("leasehold_watch_sent_bytes_total", "Bytes that watchers were sent.", nil, nil)
	descAge      = prometheus.NewDesc("leasehold_counted_seconds", "How long ago the names above were counted: at most once a second, and a twentieth of the time.", nil, nil)
	descJournal  = prometheus.NewDesc("leasehold_journal_up", "1 if the journal is kept, else 0; absent without --journal.", nil, nil)
	descUp       = prometheus.NewDesc("leasehold_store_up", "1 if the store answered the last look at it, else 0: then the names above are absent.", nil, nil)
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
	r.MustRegister(m, m.requests, m.transitions, m.lost, m.stale, m.renewals, m.waits, m.acquires, m.releases, s.latency.took, s.latency.failed, s.margins.share, s.margins.seconds, build)
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
	case (e.Op == "renew" || e.Op == "renew session") && (e.Outcome == string(api.CodeNotCurrent) || e.Outcome == string(api.CodeBroken)):
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
	for _, d := range []*prometheus.Desc{descHeld, descToken, descExpires, descWaiters, descAge, descUp, descJournal, descWatchers, descEncoded, descResets, descSent} {
		c <- d
	}
}

// Collect implements [prometheus.Collector]. It waits for the store for 2 s at most.
func (m *metrics) Collect(c chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descWaiters, float64(m.s.reg.QueuedInAll()))
	gauge(descWatchers, float64(m.s.board.watched()))
	for d, n := range map[*prometheus.Desc]int64{descEncoded: m.s.board.encoded.Load(), descResets: m.s.board.resets.Load(), descSent: m.s.board.sent.Load()} {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	switch {
	case m.s.chronicle.failure() != nil:
		gauge(descJournal, 0)
	case m.s.chronicle != nil:
		gauge(descJournal, 1)
	}
	n := m.s.census.take()
	if n == nil || n.err != nil {
		gauge(descUp, 0)
		return
	}
	gauge(descUp, 1)
	for s, many := range n.states {
		gauge(descHeld, float64(many), strings.ReplaceAll(string(s), " ", "_"))
	}
	gauge(descToken, float64(n.highest))
	age := m.s.clk.Now().Sub(n.at)
	if n.first >= 0 {
		gauge(descExpires, max(n.first-age, 0).Seconds())
	}
	gauge(descAge, age.Seconds())
}

// serveMetrics answers /metrics, for those who may see it.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, w: w, r: r}
	err := s.admit(route{}, c)
	if err == nil {
		err = c.may(Metrics, "")
	}
	if err != nil {
		fail(w, s.failure(r, err))
		return
	}
	s.metrics.handler.ServeHTTP(w, r)
}

// State returns a handler of /healthz, /readyz and /metrics, which doesn't authenticate its
// callers. It is for an address of its own.
func (s *Server) State() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.health)
	mux.Handle("GET /metrics", s.metrics.handler)
	return mux
}
