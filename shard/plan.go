package shard

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"
)

// State is what a [Strategy] decides on.
type State struct {
	Slices    []SliceState // in the order of the map
	Workers   []WorkerState
	Placement Placement
}

// SliceState is a slice, as a strategy sees it.
type SliceState struct {
	ID    string
	Owner int     // index of its worker; -1 when nobody owns it
	Next  int     // index of the worker that it is to go to; -1 when it is to stay
	Load  float64 // 1 where nothing is known
}

// WorkerState is a worker that lives, as a strategy sees it.
type WorkerState struct {
	Name, Address, Zone string
	Labels              map[string]string
	Capacity            float64
	Goes                bool // it is to own nothing
}

// Move says that a slice is to go to a worker. One that nobody owns goes at once; the owner of
// another one first drains it.
type Move struct {
	Slice, To int // indexes in the State; To is -1 for a move that is withdrawn
}

// Strategy decides who is to own what. A strategy decides nothing that is needed for safety: any
// answer is safe.
type Strategy interface {
	// Plan returns the moves that are wanted now. It must not keep the state.
	Plan(s *State) []Move
}

// Balance is the default strategy. It gives slices that nobody owns to the workers with the largest
// lack, in the order of the map, so that a worker has slices side by side. It empties workers that
// go. Then it moves slices from workers that have too much to those that have too little, the
// fewest that bring all within the tolerance.
type Balance struct {
	// Tolerance is by how much of its fair share a worker may have too much before slices move: 0.1
	// by default. It is at least one slice.
	Tolerance float64

	// Churn is the share of all slices that may be under way for balance at a time: 0.05 by
	// default, and at least 8.
	Churn float64
}

// planner is one call of Plan.
type planner struct {
	*State
	has    []float64 // load of each worker, with what is to come and without what is to go
	count  []int
	share  []float64 // the fair share of each worker
	max    int
	pinned []int // for each slice the pin that names it, or -1
	moves  []Move
	lack   lackHeap
}

// Plan implements [Strategy].
func (b Balance) Plan(s *State) []Move {
	p := &planner{State: s, has: make([]float64, len(s.Workers)), count: make([]int, len(s.Workers)), max: s.Placement.Max}
	if p.max <= 0 {
		p.max = math.MaxInt
	}
	p.pin()
	total, homeless := 0.0, []int(nil)
	under := 0
	for i, e := range s.Slices {
		total += e.Load
		at := e.Owner
		if e.Next >= 0 && p.fits(i, e.Next) && !s.Workers[e.Next].Goes {
			at = e.Next
			under++
		}
		if at < 0 || s.Workers[at].Goes || !p.fits(i, at) || p.count[at] >= p.max {
			homeless = append(homeless, i)
			continue
		}
		p.has[at] += e.Load
		p.count[at]++
	}
	p.shares(total)
	p.house(homeless)
	p.even(b, under)
	return p.moves
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
		if run >= 0 && (p.count[run] >= p.max || p.has[run]+p.Slices[i].Load > p.share[run]) {
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
	s := p.Slices[i]
	if w >= 0 {
		p.has[w] += s.Load
		p.count[w]++
	}
	if w != s.Next && (w >= 0 || s.Owner >= 0 && s.Next >= 0) {
		p.moves = append(p.moves, Move{Slice: i, To: w})
	}
}

// best returns the worker with the largest lack that may own slice i; -1 when none may.
func (p *planner) best(i int) int {
	best := -1
	for w := range p.Workers {
		if p.Workers[w].Goes || p.count[w] >= p.max || !p.fits(i, w) {
			continue
		}
		if best < 0 || p.fill(w) < p.fill(best) {
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
	moving := map[int]bool{}
	for _, m := range p.moves {
		moving[m.Slice] = true
	}
	bySurplus := make(map[int][]int, len(order))
	for i, s := range p.Slices {
		if s.Owner >= 0 && s.Next < 0 && !moving[i] && p.has[s.Owner] > p.share[s.Owner] {
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
	return h.p.share[x]-h.p.has[x] > h.p.share[y]-h.p.has[y]
}
func (h *lackHeap) Swap(a, b int) { h.workers[a], h.workers[b] = h.workers[b], h.workers[a] }
func (h *lackHeap) Push(x any)    { h.workers = append(h.workers, x.(int)) }
func (h *lackHeap) Pop() any {
	w := h.workers[len(h.workers)-1]
	h.workers = h.workers[:len(h.workers)-1]
	return w
}
