package gate

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/gate"
)

// gateMetrics are a gate's state as Prometheus reads it.
type gateMetrics struct {
	g    *gate.Gate
	name string
}

var (
	gateLabels    = []string{"lease"}
	descGateOpen  = prometheus.NewDesc("leasehold_gate_active", "1 while writes pass, else 0.", gateLabels, nil)
	descGateToken = prometheus.NewDesc("leasehold_gate_token", "Fencing token of this instance's term; 0 while it has none.", gateLabels, nil)
	descGateLeft  = prometheus.NewDesc("leasehold_gate_left_seconds", "For how long this instance's term lasts unless it is renewed; 0 while it has none.", gateLabels, nil)
	descGateBusy  = prometheus.NewDesc("leasehold_gate_writes_in_flight", "Writes that are under way.", gateLabels, nil)
	descGateSeen  = prometheus.NewDesc("leasehold_gate_requests_total", "Requests by what became of them: read and write were forwarded, refused was not.", append(gateLabels, "kind"), nil)
	descGateCut   = prometheus.NewDesc("leasehold_gate_cut_total", "Writes that were cut since the term was about to end, and may have been done.", gateLabels, nil)
	descGateBuild = prometheus.NewDesc("leasehold_build_info", "1, and what is running.", []string{"version"}, nil)
)

// handler returns what serves them.
func (m gateMetrics) handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// Describe implements [prometheus.Collector].
func (m gateMetrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descGateOpen, descGateToken, descGateLeft, descGateBusy, descGateSeen, descGateCut, descGateBuild} {
		c <- d
	}
}

// Collect implements [prometheus.Collector].
func (m gateMetrics) Collect(c chan<- prometheus.Metric) {
	s := m.g.State()
	gauge := func(d *prometheus.Desc, v float64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, m.name)
	}
	var active float64
	if s.Open {
		active = 1
	}
	gauge(descGateOpen, active)
	gauge(descGateToken, float64(s.Term.Token))
	gauge(descGateLeft, s.Left.Seconds())
	gauge(descGateBusy, float64(s.InFlight))
	for kind, n := range map[string]uint64{"read": s.Reads, "write": s.Writes, "refused": s.Refused} {
		c <- prometheus.MustNewConstMetric(descGateSeen, prometheus.CounterValue, float64(n), m.name, kind)
	}
	c <- prometheus.MustNewConstMetric(descGateCut, prometheus.CounterValue, float64(s.Cut), m.name)
	c <- prometheus.MustNewConstMetric(descGateBuild, prometheus.GaugeValue, 1, cli.ReadBuild().Version)
}
