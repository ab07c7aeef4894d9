package ids

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/flake"
)

// number is time and sequence of an id: ids of one node are equal exactly if their numbers are.
type number uint64

// numbered takes an id apart. An id that isn't of the layout is an error, as it is to Decode.
func numbered(l *flake.Layout, id flake.ID) (node uint64, n number, err error) {
	p, err := flake.Decode(*l, id)
	spec := l.Spec()
	tick := uint64(p.Time.Sub(spec.Epoch) / spec.Unit)
	return p.Node, number(tick<<l.Width(flake.Sequence) | p.Sequence), err
}

// span is the numbers from first to last, each of them once.
type span struct{ first, last number }

// spans are ids of one node, in the order in which they were made.
type spans []span

// add adds an id: to the last span if it follows it.
func (s spans) add(n number) spans {
	if last := len(s) - 1; last >= 0 && n == s[last].last+1 {
		s[last].last = n
		return s
	}
	return append(s, span{n, n})
}

// ledger is all ids that were made.
type ledger struct {
	mu     sync.Mutex
	byNode map[uint64]spans
}

func (l *ledger) enter(node uint64, s spans) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byNode == nil {
		l.byNode = map[uint64]spans{}
	}
	l.byNode[node] = append(l.byNode[node], s...)
}

// count returns how many ids were made, and how many of them were there already.
func (l *ledger) count() (all, twice uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.byNode {
		slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.first, b.first) })
		var end number // of what is covered: one after its last number
		for _, next := range s {
			all += uint64(next.last-next.first) + 1
			if next.first < end {
				twice += uint64(min(end, next.last+1) - next.first)
			}
			end = max(end, next.last+1)
		}
	}
	return all, twice
}

// The count is that of a set of all ids.
func TestLedgerCountsEachIDThatIsThereAlready(t *testing.T) {
	for _, c := range []struct {
		ids        []number
		all, twice uint64
	}{
		{nil, 0, 0},
		{[]number{0, 1, 2}, 3, 0},
		{[]number{5, 6, 7, 5}, 4, 1},
		{[]number{5, 6, 7, 8, 6, 7}, 6, 2},
		{[]number{1, 2, 3, 2, 3, 4, 3, 4, 5}, 9, 4},
		{[]number{7, 7, 7}, 3, 2},
		{[]number{9, 8, 7}, 3, 0},
	} {
		var l ledger
		var s spans
		seen := map[number]bool{}
		for _, n := range c.ids {
			s = s.add(n)
			seen[n] = true
		}
		l.enter(1, s)
		l.enter(2, spans{{5, 5}}) // another node's
		all, twice := l.count()
		if all != c.all+1 || twice != c.twice || twice != uint64(len(c.ids)-len(seen)) {
			t.Errorf("%v: %d ids, %d twice", c.ids, all, twice)
		}
	}
}
