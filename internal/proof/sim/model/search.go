package model

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Report is what a search found.
type Report struct {
	Scope     Scope
	States    uint64
	Steps     uint64 // transitions tried
	Depth     int
	Whole     bool                  // every state within the scope was reached
	Taken     map[Transition]uint64 `json:"-"`
	Violation string
	Story     []string // how it came about
}

// Search explores the scope breadth-first, until it is exhausted, a state breaks an invariant, or
// most states were seen.
func Search(s Scope, most uint64, workers int) Report {
	r := Report{Scope: s, Taken: map[Transition]uint64{}}
	seen := newSet()
	frontier := []*world{newWorld(s)}
	seen.add(newEncoder(s).hash(frontier[0]))
	r.States = 1
	for len(frontier) > 0 && r.Violation == "" && r.States < most {
		r.Depth++
		results := make([]result, workers)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { results[i] = expand(s, frontier, i, workers, seen) })
		}
		wg.Wait()
		frontier = nil
		for _, res := range results {
			frontier = append(frontier, res.next...)
			r.States += uint64(len(res.next))
			r.Steps += res.steps
			for t, n := range res.taken {
				r.Taken[t] += n
			}
			if res.wrong != "" && r.Violation == "" {
				r.Violation, r.Story = res.wrong, res.story
			}
		}
	}
	r.Whole = len(frontier) == 0 && r.Violation == ""
	return r
}

type result struct {
	next  []*world
	steps uint64
	taken map[Transition]uint64
	wrong string
	story []string
}

// expand is one worker's share of a level.
func expand(s Scope, frontier []*world, worker, workers int, seen *set) (r result) {
	c := &check{taken: map[Transition]uint64{}}
	r.taken = c.taken
	e := newEncoder(s)
	for i := worker; i < len(frontier); i += workers {
		for _, n := range frontier[i].next(c) {
			r.steps++
			c.world(n)
			if c.wrong != "" {
				r.wrong, r.story = c.wrong, story(n.from)
				return r
			}
			if seen.add(e.hash(n)) {
				r.next = append(r.next, n)
			}
		}
		frontier[i] = nil
	}
	return r
}

func story(s *step) []string {
	var all []string
	for ; s != nil; s = s.before {
		all = append(all, fmt.Sprintf(s.format, s.args...))
	}
	slices.Reverse(all)
	return all
}

// Missing returns the transitions of want that were not taken.
func Missing(want []Transition, taken map[Transition]uint64) []Transition {
	return slices.DeleteFunc(slices.Clone(want), func(t Transition) bool { return taken[t] > 0 })
}

// Unmet returns what a hold can be told, of which it never was whatever phase followed, with the
// reason where the worlds leave it out on purpose.
func Unmet(taken map[Transition]uint64) []string {
	met := map[Transition]bool{}
	for t := range taken {
		t.To = 0
		met[t] = true
	}
	var all []string
	for _, r := range requests {
		for _, outcome := range outcomes[r.Kind] {
			r.Outcome = outcome
			if !met[r] {
				text := fmt.Sprintf("%s %s: %s %s", phases[r.From], ops[r.Op], kinds[r.Kind], outcome)
				if why := leftOut[outcome]; why != "" {
					text += " (" + why + ")"
				}
				all = append(all, text)
			}
		}
	}
	return all
}

// Merge adds the transitions of one report to those of others.
func Merge(all, more map[Transition]uint64) {
	for t := range maps.Keys(more) {
		all[t] += more[t]
	}
}

// set is a set of hashes, in shards so that workers seldom wait for each other.
type set struct{ shards [64]shard }

type shard struct {
	mu    sync.Mutex
	slots []uint64 // 0 is empty
	used  int
}

func newSet() *set {
	s := &set{}
	for i := range s.shards {
		s.shards[i].slots = make([]uint64, 1<<10)
	}
	return s
}

// add adds a hash, and reports whether it is new.
func (s *set) add(h uint64) bool {
	h = max(h, 1)
	sh := &s.shards[h>>58]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !insert(sh.slots, h) {
		return false
	}
	if sh.used++; sh.used*2 > len(sh.slots) {
		old := sh.slots
		sh.slots = make([]uint64, 2*len(old))
		for _, h := range old {
			if h != 0 {
				insert(sh.slots, h)
			}
		}
	}
	return true
}

func insert(slots []uint64, h uint64) bool {
	mask := uint64(len(slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch slots[i] {
		case 0:
			slots[i] = h
			return true
		case h:
			return false
		}
	}
}
