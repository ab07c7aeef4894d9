package shards

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/shard"
)

// ours has the default strategy plan each round until nothing is left to do. Without a ceiling it doesn't split.
func ours(tb testing.TB, rounds []round, b shard.Strategy, ceiling int) (all []outcome) {
	parts := even(firstSlices)
	for n := range rounds {
		r := &rounds[n]
		var o outcome
		up := map[int]int{} // by worker: its index among those that are up
		s := &shard.State{Measured: true, Floor: min(firstSlices, ceiling), Ceiling: ceiling}
		for i, w := range r.workers {
			up[w] = i
			s.Workers = append(s.Workers, shard.WorkerState{Name: fmt.Sprint(w), Capacity: 1})
		}
		gone := make([]part, 0, len(parts)) // where parts were that have lost their worker
		for i, p := range parts {
			if _, ok := up[p.owner]; !ok && p.owner >= 0 {
				gone = append(gone, p)
				parts[i].owner = -1
			}
		}
		for step := 0; ; step++ {
			if step > 500 {
				tb.Fatalf("round %d: it never settles", n)
			}
			s.Slices = s.Slices[:0]
			for _, p := range parts {
				load, hot := r.of(p.from, p.to)
				e := shard.SliceState{From: p.from, To: p.to, Owner: -1, Next: -1, Load: load}
				if i, ok := up[p.owner]; ok {
					e.Owner = i
				}
				if hot {
					e.Hot = []shard.HotKey{{Hash: r.hot, Load: r.hotLoad}}
				}
				s.Slices = append(s.Slices, e)
			}
			moves := b.Plan(s)
			if len(moves) == 0 {
				break
			}
			// From behind, so that the indexes of those before stay.
			slices.SortFunc(moves, func(a, b shard.Move) int { return b.Slice - a.Slice })
			for _, m := range moves {
				p := &parts[m.Slice]
				switch {
				case m.Split != 0:
					o.cuts++
					upper := part{m.Split, p.to, p.owner}
					p.to = m.Split - 1
					parts = slices.Insert(parts, m.Slice+1, upper)
				case m.Merge:
					o.cuts++
					next := parts[m.Slice+1]
					load, _ := r.of(next.from, next.to)
					o.moved(r, next, p.owner, load)
					p.to = next.to
					parts = slices.Delete(parts, m.Slice+1, m.Slice+2)
				default:
					from := *p
					if p.owner < 0 { // where it was before its worker went
						for _, g := range gone {
							if g.from <= p.from && p.from <= g.to {
								from.owner = g.owner
							}
						}
					}
					o.moved(r, from, r.workers[m.To], s.Slices[m.Slice].Load)
					p.owner = r.workers[m.To]
				}
			}
		}
		o.judge(r, parts)
		all = append(all, o)
	}
	return all
}

// bound is one of Dicer's published bounds.
type bound struct{ quantile, over, under float64 }

// Those of AlgorithmChaosSuite with its default churn penalty.
var bounds = []bound{{.5, .02, .02}, {.9, .03, .03}, {.95, .04, .04}, {.99, .35, .15}, {1, .70, .30}}

// The default strategy stays within Dicer's bounds, in however many rounds.
func TestWithinDicersBounds(t *testing.T) {
	for seed := range uint64(3) {
		all := ours(t, trace(traceSeed+seed, numRounds), shard.Balance{Tolerance: tolerance, MaxLoad: maxLoad}, 2*firstSlices)
		for _, b := range bounds {
			over := quantile(all, b.quantile, func(o outcome) float64 { return o.over })
			under := quantile(all, b.quantile, func(o outcome) float64 { return o.under })
			if over > b.over || under > b.under {
				t.Errorf("seed %d, quantile %v: %.3f above and %.3f below, want at most %v and %v", seed, b.quantile, over, under, b.over, b.under)
			}
			t.Logf("seed %d: quantile %v: %.3f above and %.3f below", seed, b.quantile, over, under)
		}
		t.Logf("%.1f %% of keys (%.1f %% forced) and %.1f %% of load moved a round, %.0f moves and %.1f cuts", 100*mean(all, func(o outcome) float64 { return o.keys }),
			100*mean(all, func(o outcome) float64 { return o.forced }), 100*mean(all, func(o outcome) float64 { return o.load }),
			mean(all, func(o outcome) float64 { return float64(o.moves) }), mean(all, func(o outcome) float64 { return float64(o.cuts) }))
	}
}
