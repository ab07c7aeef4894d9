package elections

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/golden"
)

var (
	update = flag.Bool("update", false, "write the table of docs/election.md anew")
	seeds  = flag.Uint64("seeds", 300, "how many partitions TestPartitions tries of each timing")
	first  = flag.Uint64("seed", 1, "the first of them")
)

// TestPartitions has three candidates suffer partitions, for each timing: no two lead at one instant, whatever happens; when all is
// well again somebody leads, and when that one is cut off, another does within the lease's duration and a little. The elector of
// client-go suffers the same ones, for comparison. A seed decides on all faults, but not on how goroutines are scheduled, nor on the
// jitter of renewals: a failure may take a few tries to come back.
func TestPartitions(t *testing.T) {
	n := *seeds
	if testing.Short() || raceDetector {
		n = min(n, 20)
	}
	var rows []row
	for _, x := range timings {
		t.Run(x.name, func(t *testing.T) {
			r := row{timing: x, ours: many(t, n, func(t *testing.T, seed uint64) outcome {
				o := run(t, draw(seed, x), x, ours(x))
				if o.wrong != "" {
					t.Errorf("seed %d: %s", seed, o.wrong)
				}
				if o.terms < 3 {
					t.Errorf("only %d terms: nothing happened", o.terms)
				}
				if most := x.lease*5/4 + 4*time.Duration(float64(x.lease)*x.drift()); o.failover > most {
					t.Errorf("another one led after %v, want %v at most", o.failover, most)
				}
				if t.Failed() {
					t.Logf("again: go test ./internal/proof/engines/elections -run TestPartitions -seeds 1 -seed %d", seed)
				}
				return o
			})}
			r.theirs = many(t, n, func(t *testing.T, seed uint64) outcome { return run(t, draw(seed, x).networkOnly(), x, clientGo(x)) })
			rows = append(rows, r)
		})
	}
	t.Logf("\n%s", render(rows))
	if t.Failed() || len(rows) < len(timings) || n < 300 {
		return
	}
	golden.Check(t, "../../../../docs/election.md", "partitions", "go test ./internal/proof/engines/elections -run TestPartitions -update", render(rows), *update)
}

// row is what all runs of one timing showed.
type row struct {
	timing
	ours, theirs total
}

type total struct {
	runs, terms, overlaps int
	longest               time.Duration
	failovers             []time.Duration // in order
}

// many runs seeds, two at a time.
func many(t *testing.T, n uint64, one func(t *testing.T, seed uint64) outcome) total {
	var mu sync.Mutex
	var all total
	var group sync.WaitGroup
	next := make(chan uint64)
	for range 2 {
		group.Go(func() {
			for seed := range next {
				var o outcome
				t.Run(fmt.Sprint(seed), func(t *testing.T) { o = one(t, seed) })
				mu.Lock()
				all.runs, all.terms, all.overlaps = all.runs+1, all.terms+o.terms, all.overlaps+o.overlaps
				all.longest = max(all.longest, o.longest)
				if o.failover > 0 {
					all.failovers = append(all.failovers, o.failover)
				}
				mu.Unlock()
			}
		})
	}
	for seed := *first; seed < *first+n; seed++ {
		next <- seed
	}
	close(next)
	group.Wait()
	slices.Sort(all.failovers)
	return all
}

func (x total) p50() string { return seconds(x.failovers[len(x.failovers)/2]) }
func (x total) max() string { return seconds(x.failovers[len(x.failovers)-1]) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func render(rows []row) []byte {
	var b bytes.Buffer
	b.WriteString(`| lease / deadline / period | | runs | two at once: Leasehold | client-go | the longest | failover: Leasehold p50 | max | client-go p50 | max |
|---|---|---|---|---|---|---|---|---|---|
`)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %v / %v / %v | %s | %d | **%d** of %d terms | %d of %d terms | %s | %s | %s | %s | %s |\n", r.lease, r.renew, r.period, r.name, r.ours.runs,
			r.ours.overlaps, r.ours.terms, r.theirs.overlaps, r.theirs.terms, seconds(r.theirs.longest),
			r.ours.p50(), r.ours.max(), r.theirs.p50(), r.theirs.max())
	}
	return b.Bytes()
}
