package shard

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// Report says that a key caused a load of n: requests, bytes, milliseconds of work, in whatever
// unit the workers of a space share. The strategy balances by what was reported. What is reported
// of a key that isn't this worker's doesn't count, nor does an n of 0 or less. Report does no I/O,
// never blocks for long, and allocates nothing.
//
// It is exact at low rates. At high rates it samples: some 16,000 reports between two heartbeats
// count, each in proportion to its n. A slice with a hundredth of the worker's load is then
// measured to 8 % in one heartbeat (one standard deviation), and better over several.
func (o *Owner) Report(key string, n float64) {
	if w := math.Float64frombits(o.gate.weight.Load()); n < w {
		if rand.Float64()*w >= n {
			return
		}
		n = w
	}
	o.count(key, n)
}

// count counts a report of a key.
func (o *Owner) count(key string, n float64) {
	if !(n > 0) || math.IsInf(n, 1) {
		return
	}
	hash := shardmap.Hash(key)
	e := o.chunks[o.space.ChunkOf(hash)].Load().find(key, hash, o.space.Hashed)
	if e == nil || e.mine == nil {
		return
	}
	e.mine.meter.add(hash, n, o.space.Hashed)
	o.gate.passed(n)
}

// samples is how many reports are to count between two heartbeats.
const samples = 1 << 14

// gate decides which reports count: one of n with the probability n/weight, as weight. So the sum
// is right on average, and large reports always count.
type gate struct {
	weight atomic.Uint64 // a float64
	hits   atomic.Uint64 // since the last digest
	total  atomic.Uint64 // a float64: of the hits
	used   atomic.Bool   // anything was ever reported
}

// passed notes that a report has counted. A rate that has grown much since the last heartbeat
// raises the weight at once.
func (g *gate) passed(n float64) {
	for {
		was := g.total.Load()
		if g.total.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+n)) {
			break
		}
	}
	if !g.used.Load() {
		g.used.Store(true)
	}
	if hits := g.hits.Add(1); hits%(4*samples) == 0 {
		mean := math.Float64frombits(g.total.Load()) / float64(hits)
		g.weight.Store(math.Float64bits(2 * max(mean, math.Float64frombits(g.weight.Load()))))
	}
}

// reset sets the weight by what was reported since the last time.
func (g *gate) reset() {
	total := math.Float64frombits(g.total.Swap(0))
	hits := g.hits.Swap(0)
	weight := 0.0
	if was := math.Float64frombits(g.weight.Load()); hits > samples || was > 0 {
		weight = total / samples
	}
	if hits < samples/4 { // so few that all may count
		weight = 0
	}
	g.weight.Store(math.Float64bits(weight))
}

// meter is the load of one term of a slice. The zero value is ready.
type meter struct {
	mu     sync.Mutex
	sum    float64 // since the last digest
	square float64 // the sum of squares since then
	sketch *sketch // of keys since then; nil before the first report, and in a space of names

	began clock.Instant // of the interval; 0 before the first digest
	known bool
	load  float64 // a second, smoothed
	power float64 // of the squares, a second, smoothed
	hot   [hotKeys]shardmap.Hot
}

// hotKeys is how many busy keys of a slice are remembered.
const hotKeys = 4

func (m *meter) add(hash uint64, n float64, hashed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum += n
	m.square += n * n
	if !hashed {
		return
	}
	if m.sketch == nil {
		m.sketch = &sketch{} // once in the term
	}
	m.sketch.add(hash, n)
}

// measure closes the interval, and reports whether the load of the slice is known. What was
// reported long ago counts less and less: by half after 0.7 of smooth.
func (m *meter) measure(now clock.Instant, shortest, smooth time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	took := now.Sub(m.began)
	if m.began == 0 || took < shortest {
		if m.began == 0 {
			m.began, m.sum, m.square = now, 0, 0
			m.sketch.clear()
		}
		return m.known
	}
	share := 1.0
	if m.known {
		share = 1 - math.Exp(-float64(took)/float64(smooth))
	}
	m.load += share * (m.sum/took.Seconds() - m.load)
	m.power += share * (m.square/took.Seconds() - m.power)
	m.heat(share, took)
	m.began, m.sum, m.square, m.known = now, 0, 0, true
	m.sketch.clear()
	return true
}

// heat smooths the loads of busy keys. A key that is new counts as 0 before. m.mu is held.
func (m *meter) heat(share float64, took time.Duration) {
	for i := range m.hot {
		m.hot[i].Load *= 1 - share
	}
	for _, c := range m.sketch.top() {
		load := share * c.least() / took.Seconds()
		at := 0
		for i, h := range m.hot {
			if h.Load > 0 && h.Hash == c.hash {
				at = i
				break
			}
			if h.Load < m.hot[at].Load {
				at = i
			}
		}
		if h := &m.hot[at]; h.Hash == c.hash {
			h.Load += load
		} else if load > h.Load {
			*h = shardmap.Hot{Hash: c.hash, Load: load}
		}
	}
}

// digest returns what the heartbeat carries of this worker's load; "" when nothing was ever
// reported.
func (o *Owner) digest() string {
	now, ttl := o.clk.Now(), o.m.TTL()
	var d shardmap.Digest
	total, power := 0.0, 0.0
	for _, t := range o.tables() {
		for n, e := range t.entries {
			if e.mine == nil || !e.mine.serving.Load() || !e.mine.meter.measure(now, ttl/10, ttl) {
				continue
			}
			m := &e.mine.meter
			m.mu.Lock()
			d.Slices = append(d.Slices, shardmap.SliceLoad{Tag: shardmap.Tag(t.from[n]), Load: m.load})
			total += m.load
			power += m.power
			for _, h := range m.hot {
				if h.Load > m.load/8 {
					d.Hot = append(d.Hot, h)
				}
			}
			m.mu.Unlock()
		}
	}
	o.gate.reset()
	if total > 0 {
		d.Grain = power / total
	}
	text := ""
	if total > 0 || o.gate.used.Load() {
		text = d.Text()
	}
	o.carried.Store(&text)
	return text
}
