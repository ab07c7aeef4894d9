package standby

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
)

// Metrics are the state as Prometheus reads it.
type Metrics struct {
	registry *prometheus.Registry
	state    *admiral.State

	actives, passives atomic.Uint64 // how often this instance has become active, and passive
	throttled         atomic.Uint64
}

var (
	descActive = prometheus.NewDesc("leasehold_standby_active", "1 while this instance is active, 0 while it is passive.", labels, nil)
	descKnown  = prometheus.NewDesc("leasehold_standby_initialized", "1 while it is known who may write.", labels, nil)
	descStore  = prometheus.NewDesc("leasehold_standby_store_up", "0 since the store last failed to answer, until it answers again.", labels, nil)
	descToken  = prometheus.NewDesc("leasehold_standby_term", "Fencing token of the lease's present term, of any holder; 0 when nobody holds it.", labels, nil)
	descLeft   = prometheus.NewDesc("leasehold_standby_expires_in_seconds", "For how long the present term lasts unless it is renewed.", labels, nil)
	descLosing = prometheus.NewDesc("leasehold_standby_jeopardy", "1 while this instance is active and a renewal has failed, until one succeeds.", labels, nil)
	descHeld   = prometheus.NewDesc("leasehold_standby_held", "1 while an operator holds every instance passive.", labels, nil)
	descWall   = prometheus.NewDesc("leasehold_standby_clock_seconds", "This machine's wall clock.", labels, nil)
	descApart  = prometheus.NewDesc("leasehold_standby_clock_apart_seconds", "How far this machine's wall clock and the store's are apart at least. Only where the store tells its own.", labels, nil)
	descBusy   = prometheus.NewDesc("leasehold_standby_throttled_total", "Requests that the table refused for its capacity.", labels, nil)
	descTurns  = prometheus.NewDesc("leasehold_standby_changes_total", "How often this instance has become active, or passive.", append(labels, "to"), nil)
)

var labels = []string{"lease", "pod"}

// NewMetrics returns the metrics of s. Tell them the changes with [Metrics.Changed].
func NewMetrics(s *admiral.State) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), state: s}
	m.registry.MustRegister(m)
	return m
}

// Changed counts a change of the role.
func (m *Metrics) Changed(active bool) {
	if active {
		m.actives.Add(1)
	} else {
		m.passives.Add(1)
	}
}

// Throttled counts a request that was refused for the table's capacity.
func (m *Metrics) Throttled() { m.throttled.Add(1) }

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descActive, descKnown, descStore, descToken, descLeft, descLosing, descHeld, descWall, descApart, descBusy, descTurns,
	} {
		c <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	st := m.state.Status()
	gauge := func(d *prometheus.Desc, v float64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, st.Lease, st.Pod)
	}
	gauge(descActive, number(!st.ReadOnly))
	gauge(descKnown, number(st.Initialized))
	gauge(descStore, number(st.Err == nil))
	gauge(descToken, float64(st.Token))
	gauge(descLeft, st.ExpiresIn.Seconds())
	gauge(descLosing, number(!st.ReadOnly && st.Err != nil))
	gauge(descHeld, number(st.Owner == admiral.SkipOwner))
	const perSecond = 1e3
	gauge(descWall, float64(clock.System().Wall().UnixMilli())/perSecond)
	if apart, ok := m.state.ClockApart(); ok {
		gauge(descApart, apart.Seconds())
	}
	c <- prometheus.MustNewConstMetric(descBusy, prometheus.CounterValue, float64(m.throttled.Load()), st.Lease, st.Pod)
	count := func(n uint64, to string) {
		c <- prometheus.MustNewConstMetric(descTurns, prometheus.CounterValue, float64(n), st.Lease, st.Pod, to)
	}
	count(m.actives.Load(), roleActive)
	count(m.passives.Load(), rolePassive)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
