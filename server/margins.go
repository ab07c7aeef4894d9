package server

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/lessor"
)

// margins measures how much validity was left when renewals came. What it knows is in memory: the
// first renewal after a restart is not counted.
type margins struct {
	share, seconds prometheus.Histogram

	mu   sync.Mutex
	all  map[string]margin // by name, or a session's id
	many int               // from so many on, those that are long over are looked for
}

type margin struct {
	token fence.Token
	until clock.Instant
	ttl   time.Duration
}

// fewMargins is from how many terms on those that are over are forgotten.
const fewMargins = 1024

func newMargins() *margins {
	return &margins{
		all: map[string]margin{}, many: fewMargins,
		share: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasehold_renewal_margin_ratio", Help: "How much of the TTL was left when a renewal came; 0 for one that came too late and yet was in time to keep the name.",
			Buckets: []float64{0, .05, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1},
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasehold_renewal_margin_seconds", Help: "How much validity was left when a renewal came.",
			Buckets: []float64{0, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 300, 3600},
		}),
	}
}

// granted notes until when a grant is valid. came is when the renewal came that it answers; 0 for
// one that begins a term.
func (m *margins) granted(g lessor.Grant, came clock.Instant) {
	if g.ValidUntil == clock.NoDeadline { // its session is renewed
		return
	}
	key, now := g.Record.Key, margin{g.Record.Token, g.ValidUntil, g.Record.TTL}
	m.mu.Lock()
	before, known := m.all[key]
	m.all[key] = now
	if len(m.all) >= m.many {
		for k, of := range m.all {
			if of.until.Add(of.ttl) < g.ValidUntil.Add(-g.Record.TTL) { // about now
				delete(m.all, k)
			}
		}
		m.many = max(2*len(m.all), fewMargins)
	}
	m.mu.Unlock()
	if !known || came == 0 || before.token != now.token || before.ttl <= 0 {
		return
	}
	left := max(before.until.Sub(came), 0)
	m.seconds.Observe(left.Seconds())
	m.share.Observe(min(left.Seconds()/before.ttl.Seconds(), 1))
}

// over forgets a term.
func (m *margins) over(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}
