package shard

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"
)

// planner is one call of Plan.
type planner struct {
	*State
	has    []float64 // load of each worker, with what is to come and without what is to go
	count  []int
	share  []float64 // the fair share of each worker
	total  float64   // load of all
	max    int
	pinned []int // for each slice the pin that names it, or -1
	moves  []Move
	moving []bool // slices of moves
	lack   lackHeap

	// Of measured loads: the owner of each slice that may move for balance, else -1; and the
	// largest slice of each worker that can't be split.
	from []int32
	bulk []float64
}

// Plan implements [Strategy].
func (b Balance) Plan(s *State) []Move {
	p := &planner{State: s, has: make([]float64, len(s.Workers)), count: make([]int, len(s.Workers)), max: s.Placement.Max, moving: make([]bool, len(s.Slices))}
	if p.max <= 0 {
		p.max = math.MaxInt
	}
	p.pin()
	homeless, under := p.sum()
	p.shares(p.total)
	homeless = p.scatter(homeless)
	if !s.Measured {
		p.house(homeless)
		p.even(b, under)
		return p.moves
	}
	// The largest first, so that the small ones fill what is left.
	slices.SortFunc(homeless, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Slices[b].Load, s.Slices[a].Load), cmp.Compare(a, b))
	})
	p.house(homeless)
	p.level(b, under)
	return p.moves
}

// sum adds up what each worker has. It returns the slices that have no worker that may keep them,
// and how many are under way.
func (p *planner) sum() (homeless []int, under int) {
	if p.Measured {
		p.from, p.bulk = make([]int32, len(p.Slices)), make([]float64, len(p.Workers))
	}
	for i := range p.Slices {
		e := &p.Slices[i]
		p.total += e.Load
		at := e.Owner
		if e.Next >= 0 && p.fits(i, e.Next) && !p.Workers[e.Next].Goes {
			at = e.Next
			under++
		}
		homes := at >= 0 && !p.Workers[at].Goes && p.fits(i, at) && p.count[at] < p.max
		if homes {
			p.has[at] += e.Load
			p.count[at]++
		} else {
			homeless = append(homeless, i)
		}
		if !p.Measured {
			continue
		}
		p.from[i] = -1
		if homes && at == e.Owner && e.Next < 0 && !e.Busy && e.Load > 0 {
			p.from[i] = int32(at)
		}
		if homes && e.Load > p.bulk[at] && p.whole(e) {
			p.bulk[at] = e.Load
		}
	}
	return homeless, under
}

// whole reports whether a slice can't be split.
func (p *planner) whole(s *SliceState) bool { return p.Ceiling == 0 || s.From == s.To }

// maxScattered bounds what a plan looks at one by one.
const maxScattered = 1024

// scatter gives each slice that is suspected to end its owners to another worker, so that it takes
// as few others into suspicion as possible. It returns the slices that aren't.
func (p *planner) scatter(homeless []int) []int {
	var rest, suspects []int
	for _, i := range homeless {
		if p.Slices[i].Deaths > 1 && len(suspects) < maxScattered {
			suspects = append(suspects, i)
		} else {
			rest = append(rest, i)
		}
	}
	slices.SortStableFunc(suspects, func(a, b int) int { return cmp.Compare(p.Slices[b].Deaths, p.Slices[a].Deaths) })
	got := make([]int, len(p.Workers))
	for _, i := range suspects {
		best := -1
		for w := range p.Workers {
			if p.Workers[w].Goes || p.count[w] >= p.max || !p.fits(i, w) {
				continue
			}
			if best < 0 || got[w] < got[best] || got[w] == got[best] && p.fill(w) < p.fill(best) {
				best = w
			}
		}
		p.give(i, best)
		if best >= 0 {
			got[best]++
		}
	}
	return rest
}

// pin finds the pin of each slice. Without pins it does nothing.
func (p *planner) pin() {
	if len(p.Placement.Pins) == 0 {
		return
	}
	p.pinned = make([]int, len(p.Slices))
	for i, s := range p.Slices {
		p.pinned[i] = slices.IndexFunc(p.Placement.Pins, func(pin Pin) bool { return strings.HasPrefix(s.ID, pin.Prefix) })
	}
}

// fits reports whether worker w may own slice i by its pin.
func (p *planner) fits(i, w int) bool {
	if p.pinned == nil || p.pinned[i] < 0 {
		return true
	}
	pin, worker := p.Placement.Pins[p.pinned[i]], p.Workers[w]
	for k, v := range pin.Labels {
		if worker.Labels[k] != v {
			return false
		}
	}
	return (pin.Zone == "" || pin.Zone == worker.Zone) && (pin.Worker == "" || pin.Worker == worker.Name || pin.Worker == worker.Address)
}

// shares works out the fair share of each worker: by capacity; with Zones, each zone first gets an
// equal part.
func (p *planner) shares(total float64) {
	p.share = make([]float64, len(p.Workers))
	zones := map[string]float64{}
	for _, w := range p.Workers {
		if !w.Goes {
			zones[p.zone(w)] += w.Capacity
		}
	}
	for i, w := range p.Workers {
		if !w.Goes {
			p.share[i] = total / float64(len(zones)) * w.Capacity / zones[p.zone(w)]
		}
	}
}

func (p *planner) zone(w WorkerState) string {
	if p.Placement.Zones {
		return w.Zone
	}
	return ""
}

// house gives slices that are nobody's to the workers that lack most, in runs, so that a worker has
// slices side by side.
func (p *planner) house(homeless []int) {
	p.lack = lackHeap{p: p}
	for w := range p.Workers {
		if !p.Workers[w].Goes && p.count[w] < p.max {
			p.lack.workers = append(p.lack.workers, w)
		}
	}
	heap.Init(&p.lack)
	run := -1
	for _, i := range homeless {
		if p.pinned != nil && p.pinned[i] >= 0 {
			p.give(i, p.best(i))
			heap.Init(&p.lack) // any worker may have got it
			run = -1
			continue
		}
		if run >= 0 && (p.Measured || p.count[run] >= p.max || p.has[run]+p.Slices[i].Load > p.share[run]) {
			run = -1
		}
		if run < 0 {
			run = p.lacking()
		}
		p.give(i, run)
	}
}

// lacking returns the worker that lacks most and has room; -1 when none has.
func (p *planner) lacking() int {
	for p.lack.Len() > 0 {
		heap.Fix(&p.lack, 0) // of the last one
		if w := p.lack.workers[0]; p.count[w] < p.max {
			return w
		}
		heap.Pop(&p.lack)
	}
	return -1
}

// give notes that slice i is to go to w; -1 is nowhere.
func (p *planner) give(i, w int) {
	s := &p.Slices[i]
	if w >= 0 {
		p.has[w] += s.Load
		p.count[w]++
	}
	if w != s.Next && (w >= 0 || s.Owner >= 0 && s.Next >= 0) {
		p.moves = append(p.moves, Move{Slice: i, To: w})
		p.moving[i] = true
	}
}

// best returns the worker with the largest lack that may own slice i; -1 when none may.
func (p *planner) best(i int) int {
	best := -1
	for w := range p.Workers {
		if p.Workers[w].Goes || p.count[w] >= p.max || !p.fits(i, w) {
			continue
		}
		if best < 0 || p.fill(w) < p.fill(best) || p.fill(w) == p.fill(best) && p.count[w] < p.count[best] {
			best = w
		}
	}
	return best
}

// fill returns how much of its share a worker has.
func (p *planner) fill(w int) float64 { return p.has[w] / max(p.share[w], 1e-9) }

// even moves slices from the fullest workers to the emptiest.
func (p *planner) even(b Balance, under int) {
	tolerance, churn := cmp.Or(b.Tolerance, 0.1), cmp.Or(b.Churn, 0.05)
	budget := max(int(churn*float64(len(p.Slices))), 8) - under
	var order []int
	for w := range p.Workers {
		if !p.Workers[w].Goes {
			order = append(order, w)
		}
	}
	if len(order) < 2 || budget <= 0 || !p.uneven(order, tolerance) {
		return
	}
	bySurplus := make(map[int][]int, len(order))
	for i := range p.Slices {
		s := &p.Slices[i]
		if s.Owner >= 0 && s.Next < 0 && !p.moving[i] && p.has[s.Owner] > p.share[s.Owner] {
			bySurplus[s.Owner] = append(bySurplus[s.Owner], i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.fill(b), p.fill(a)) })
	heap.Init(&p.lack)
	for _, from := range order {
		for _, i := range slices.Backward(bySurplus[from]) {
			to, load := p.lacking(), p.Slices[i].Load
			if budget == 0 || to < 0 || (p.has[to]+load)/max(p.share[to], 1e-9) >= p.fill(from) {
				break
			}
			if p.fits(i, to) {
				p.has[from] -= load
				p.count[from]--
				p.give(i, to)
				budget--
			}
		}
	}
}

// uneven reports whether a worker has too much, by more than the tolerance and by a slice at least,
// or too little.
func (p *planner) uneven(order []int, tolerance float64) bool {
	for _, w := range order {
		if off := math.Abs(p.has[w] - p.share[w]); off > tolerance*p.share[w] && off >= 1 {
			return true
		}
	}
	return false
}

// lackHeap has the worker with the largest lack first.
type lackHeap struct {
	p       *planner
	workers []int
}

func (h *lackHeap) Len() int { return len(h.workers) }
func (h *lackHeap) Less(a, b int) bool {
	x, y := h.workers[a], h.workers[b]
	lackX, lackY := h.p.share[x]-h.p.has[x], h.p.share[y]-h.p.has[y]
	return lackX > lackY || lackX == lackY && h.p.count[x] < h.p.count[y]
}
func (h *lackHeap) Swap(a, b int) { h.workers[a], h.workers[b] = h.workers[b], h.workers[a] }
func (h *lackHeap) Push(x any)    { h.workers = append(h.workers, x.(int)) }
func (h *lackHeap) Pop() any {
	w := h.workers[len(h.workers)-1]
	h.workers = h.workers[:len(h.workers)-1]
	return w
}

// workerHeap has the worker first that is least by less.
type workerHeap struct {
	workers []int
	less    func(a, b int) bool
	at      map[int]int // where a worker is
}

func (h *workerHeap) init() {
	h.at = make(map[int]int, len(h.workers))
	for i, w := range h.workers {
		h.at[w] = i
	}
	heap.Init(h)
}

// fix puts a worker where it belongs, if it is in.
func (h *workerHeap) fix(w int) {
	if i, ok := h.at[w]; ok {
		heap.Fix(h, i)
	}
}

func (h *workerHeap) pop() { heap.Pop(h) }

func (h *workerHeap) Len() int           { return len(h.workers) }
func (h *workerHeap) Less(a, b int) bool { return h.less(h.workers[a], h.workers[b]) }
func (h *workerHeap) Swap(a, b int) {
	h.workers[a], h.workers[b] = h.workers[b], h.workers[a]
	h.at[h.workers[a]], h.at[h.workers[b]] = a, b
}
func (h *workerHeap) Push(x any) { h.workers = append(h.workers, x.(int)) } // it never grows
func (h *workerHeap) Pop() any {
	w := h.workers[len(h.workers)-1]
	h.workers = h.workers[:len(h.workers)-1]
	delete(h.at, w)
	return w
}
