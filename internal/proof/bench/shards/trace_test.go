package shards

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// The parameters of the trace, as Dicer's test has them.
const (
	numWorkers  = 8
	fewest      = 6
	numRanges   = 128
	maxDensity  = 4.0
	maxLoad     = 1000.0 // that a worker bears
	overload    = 1.2
	hotShare    = 0.5
	tolerance   = 0.025
	numRounds   = 1000
	traceSeed   = 1
	firstSlices = 256 // Dicer has 32 a worker at least, and 64 at most
)

// round is one round of the trace.
type round struct {
	workers []int     // that are up, rising
	from    []float64 // bounds of the ranges of keys, as shares of the key space; the first is 0
	load    []float64 // of each range
	below   []float64 // load of all ranges before
	total   float64   // with the hot key
	hot     uint64    // a key; of no meaning if hotLoad is 0
	hotLoad float64
}

// trace draws the rounds.
func trace(seed uint64, rounds int) (all []round) {
	rng := rand.New(rand.NewPCG(seed, 0xd1ce))
	for range rounds {
		r := round{workers: rng.Perm(numWorkers)[:fewest+rng.IntN(numWorkers-fewest+1)], from: []float64{0}}
		slices.Sort(r.workers)
		hot := rng.IntN(2) == 0
		r.total = rng.Float64() * overload * maxLoad * float64(len(r.workers))
		for range numRanges - 1 {
			r.from = append(r.from, rng.Float64())
		}
		slices.Sort(r.from)
		sum := 0.0
		for i := range r.from {
			r.load = append(r.load, (1+rng.Float64()*(maxDensity-1))*(r.end(i)-r.from[i]))
			sum += r.load[i]
		}
		if hot {
			r.hotLoad = r.total * hotShare
			r.hot = key(r.from[rng.IntN(numRanges)])
		}
		below := 0.0
		for i := range r.load {
			r.load[i] *= (r.total - r.hotLoad) / sum
			r.below = append(r.below, below)
			below += r.load[i]
		}
		all = append(all, r)
	}
	return all
}

// key returns the hash at a share of the key space.
func key(share float64) uint64 { return uint64(share * (1 << 63) * 2) }

func (r *round) end(i int) float64 {
	if i+1 < len(r.from) {
		return r.from[i+1]
	}
	return 1
}

// upTo returns the load of all keys below a share of the key space, without the hot key.
func (r *round) upTo(share float64) float64 {
	i := sort.SearchFloat64s(r.from, share)
	if i == 0 {
		return 0
	}
	i--
	if width := r.end(i) - r.from[i]; width > 0 {
		return r.below[i] + r.load[i]*(share-r.from[i])/width
	}
	return r.below[i]
}

// of returns the load of the keys from one to another, both included, and whether the hot key is one
// of them.
func (r *round) of(from, to uint64) (load float64, hot bool) {
	load = r.upTo((float64(to)+1)/math.MaxUint64) - r.upTo(float64(from)/math.MaxUint64)
	if r.hotLoad > 0 && from <= r.hot && r.hot <= to {
		return load + r.hotLoad, true
	}
	return max(load, 0), false
}

// outcome is what a contestant has made of a round.
type outcome struct {
	over, under float64 // of the worker farthest above and below what one owner a key permits
	keys, load  float64 // shares that moved
	forced      float64 // of the keys: their worker is down
	moves       int     // parts that moved
	cuts        int     // splits and merges
}

// judge fills in the balance of an outcome. owner is where each part of the key space is.
func (o *outcome) judge(r *round, parts []part) {
	has, owner := map[int]float64{}, -1
	for _, p := range parts {
		load, hot := r.of(p.from, p.to)
		has[p.owner] += load
		if hot {
			owner = p.owner
		}
	}
	n := float64(len(r.workers))
	mean := r.total / n
	hint := max(maxLoad, mean)
	for _, w := range r.workers {
		ideal := mean
		if r.hotLoad > mean {
			ideal = (r.total - r.hotLoad) / (n - 1)
			if w == owner {
				ideal = r.hotLoad
			}
		}
		o.over = max(o.over, (has[w]-ideal)/hint)
		o.under = max(o.under, (ideal-has[w])/hint)
	}
}

// part is a part of the key space, and the worker that owns it.
type part struct {
	from, to uint64
	owner    int // -1 at first
}

func (p part) width() float64 { return (float64(p.to-p.from) + 1) / math.MaxUint64 }

// even cuts the key space into n parts.
func even(n int) (all []part) {
	width := uint64(math.MaxUint64)/uint64(n) + 1
	for i := range uint64(n) {
		all = append(all, part{i * width, i*width + width - 1, -1})
	}
	all[n-1].to = math.MaxUint64
	return all
}

// fixed judges what a contestant made of each round that doesn't cut the key space: owners[i][p] is
// the worker of part p in round i.
func fixed(rounds []round, parts []part, owners [][]int) (all []outcome) {
	for i := range rounds {
		r := &rounds[i]
		var o outcome
		for p := range parts {
			load, _ := r.of(parts[p].from, parts[p].to)
			o.moved(r, parts[p], owners[i][p], load)
			parts[p].owner = owners[i][p]
		}
		o.judge(r, parts)
		all = append(all, o)
	}
	return all
}

// moved notes that a part is with another worker now.
func (o *outcome) moved(r *round, p part, to int, load float64) {
	if p.owner == to || p.owner < 0 {
		return
	}
	o.moves++
	o.keys += p.width()
	o.load += load / max(r.total, 1e-9)
	if !slices.Contains(r.workers, p.owner) {
		o.forced += p.width()
	}
}

// quantile returns a quantile of what f says of outcomes, as Dicer's test takes it.
func quantile(all []outcome, q float64, f func(outcome) float64) float64 {
	var values []float64
	for _, o := range all {
		values = append(values, f(o))
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[int(float64(len(values)-1)*q)]
}

func mean(all []outcome, f func(outcome) float64) float64 {
	sum := 0.0
	for _, o := range all {
		sum += f(o)
	}
	return sum / float64(len(all))
}
