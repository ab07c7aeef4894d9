package shard

import (
	"cmp"
	"math"
	"slices"
)

// How close to its fair share a worker is brought, as a part of the tolerance, once it is beyond
// it; what a move has to gain at least, as a part of the load that it moves; what the load of a
// slice counts for beside its keys, as the cost of a move; and how many standard deviations from
// its share a worker may be by chance.
const (
	aimed     = 0.8
	worth     = 0.25
	loadCosts = 0.25
	chance    = 4
)

// maxSearched bounds how many workers a plan looks at for slices with pins, all together.
const maxSearched = 10_000_000

// level moves slices from the workers with too much load to those with too little.
func (p *planner) level(b Balance, under int) {
	churn := cmp.Or(b.Churn, 0.05)
	l := &leveller{planner: p, budget: max(int(churn*float64(len(p.Slices))), 8) - under, tolerance: cmp.Or(b.Tolerance, 0.1), b: b}
	for w := range p.Workers {
		if !p.Workers[w].Goes {
			l.order = append(l.order, w)
		}
	}
	if len(l.order) == 0 {
		return
	}
	l.concede()
	l.margin = make([]float64, len(p.Workers))
	for _, w := range l.order {
		l.margin[w] = max(l.tolerance*max(p.share[w], b.MaxLoad*p.Workers[w].Capacity), chance*math.Sqrt(p.share[w]*p.Grain))
	}
	if l.budget > 0 && len(l.order) > 1 && l.uneven() {
		l.run()
	}
	l.cut()
}

// leveller is one balancing by load.
type leveller struct {
	*planner
	b         Balance
	order     []int // workers that stay
	tolerance float64
	margin    []float64 // by worker: the tolerance, as load
	budget    int
	of        [][]int // by worker: slices that may move, what brings the most first
	stuck     []int   // workers that have too much, and nothing that may move
	searched  int
}

// concede gives a worker whose slice has more than its fair share, and can't be split, that share,
// and the others less: nothing they take brings it down.
func (l *leveller) concede() {
	conceded := make([]bool, len(l.Workers))
	for range l.order {
		freed, weight, more := 0.0, 0.0, false
		for _, w := range l.order {
			switch {
			case conceded[w]:
			case l.bulk[w] > l.share[w]:
				freed += l.share[w] - l.bulk[w] // below 0
				l.share[w], conceded[w], more = l.bulk[w], true, true
			default:
				weight += l.share[w]
			}
		}
		if !more || weight <= 0 {
			return
		}
		scale := max(1+freed/weight, 0)
		for _, w := range l.order {
			if !conceded[w] {
				l.share[w] *= scale
			}
		}
	}
}

// uneven reports whether any worker is beyond the tolerance.
func (l *leveller) uneven() bool {
	return slices.ContainsFunc(l.order, func(w int) bool { return math.Abs(l.has[w]-l.share[w]) > l.margin[w] })
}

// run moves slices as long as that helps, and the budget lasts.
func (l *leveller) run() {
	l.collect()
	full := &workerHeap{workers: slices.Clone(l.order), less: func(a, b int) bool { return l.excess(a) > l.excess(b) }}
	empty := &workerHeap{less: func(a, b int) bool { return l.excess(a) < l.excess(b) }}
	for _, w := range l.order {
		if l.count[w] < l.max {
			empty.workers = append(empty.workers, w)
		}
	}
	full.init()
	empty.init()
	sorted := make([]bool, len(l.Workers))
	for l.budget > 0 && len(full.workers) > 0 && len(empty.workers) > 0 {
		from, to := full.workers[0], empty.workers[0]
		if l.done(from, to) {
			return
		}
		if !sorted[from] {
			sorted[from] = true
			slices.SortStableFunc(l.of[from], func(a, b int) int { return cmp.Compare(l.density(b), l.density(a)) })
		}
		n, at := l.choose(from, to)
		if n < 0 {
			if l.excess(from) > l.margin[from] {
				l.stuck = append(l.stuck, from)
			}
			full.pop()
			continue
		}
		i := l.of[from][n]
		copy(l.of[from][1:n+1], l.of[from][:n]) // mostly n is 0
		l.of[from] = l.of[from][1:]
		l.has[from] -= l.Slices[i].Load
		l.count[from]--
		l.give(i, at)
		l.budget--
		full.fix(from)
		full.fix(at)
		empty.fix(from)
		empty.fix(at)
		for len(empty.workers) > 0 && l.count[empty.workers[0]] >= l.max {
			empty.pop()
		}
	}
}

// collect finds what may move of each worker that has too much. What has to stay where it is isn't
// in it.
func (l *leveller) collect() {
	moves := func(i int, w int32) bool { return w >= 0 && l.excess(int(w)) > 0 && !l.moving[i] }
	n, ends := 0, make([]int, len(l.Workers))
	for i, w := range l.from {
		if moves(i, w) {
			ends[w]++
			n++
		}
	}
	all, at := make([]int, n), 0
	l.of = make([][]int, len(l.Workers))
	for w, n := range ends {
		l.of[w] = all[at : at : at+n]
		at += n
	}
	for i, w := range l.from {
		if moves(i, w) {
			l.of[w] = append(l.of[w], i)
		}
	}
}

// done reports whether a move between the fullest and the emptiest worker would bring nothing.
func (l *leveller) done(from, to int) bool {
	near := l.excess(from) <= aimed*l.margin[from] && (l.excess(to) >= -aimed*l.margin[to] || l.excess(from) <= 0)
	return near || from == to
}

// excess returns how much more than its share a worker has.
func (l *leveller) excess(w int) float64 { return l.has[w] - l.share[w] }

// density is what a move of slice i brings for what it costs: its load, by its keys and by the
// requests that the move delays.
func (l *leveller) density(i int) float64 {
	s := &l.Slices[i]
	keys := 1 / float64(len(l.Slices))
	if l.Ceiling > 0 {
		keys = float64(s.To-s.From) / math.MaxUint64
	}
	total := 0.0
	if l.total > 0 {
		total = s.Load / l.total
	}
	return s.Load / max(keys+loadCosts*total, 1e-300)
}

// choose returns which of the slices of worker from, by its place in l.of, is best moved, and where
// to; -1 for none. to is the emptiest worker, where a slice goes unless it mustn't.
func (l *leveller) choose(from, to int) (n, at int) {
	best, place := -1, -1
	for n, i := range l.of[from] {
		at := to
		if !l.fits(i, to) {
			if l.searched > maxSearched {
				continue
			}
			l.searched += len(l.Workers)
			if at = l.best(i); at < 0 || at == from {
				continue
			}
		}
		load := l.Slices[i].Load
		x, y := l.excess(from), l.excess(at)
		if x-load < -aimed*l.margin[from] && y+load > aimed*l.margin[at] {
			continue // it would only change places
		}
		gain := math.Abs(x) + math.Abs(y) - math.Abs(x-load) - math.Abs(y+load)
		if gain < 2*worth*load {
			continue
		}
		if gain >= 1.5*load { // it is as good as any: they are in order
			return n, at
		}
		if best < 0 {
			best, place = n, at
		}
	}
	return best, place
}
