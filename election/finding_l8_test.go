package election_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store/faulty"
)

// A candidate that waits costs the same number of reads however many there are.
func TestFinding_L8_ACandidateLooksAtTheOneBeforeIt(t *testing.T) {
	count := func(candidates int) (perTTL float64) {
		inWorld(t, func(t *testing.T, w *world) {
			w.Ageless = true
			var n atomic.Int64
			var all []*process
			for i := range candidates {
				all = append(all, w.candidate(fmt.Sprintf("c%02d", i), election.Options{}, func(p *process) {
					p.plan = func(op faulty.Op) faulty.Fault {
						if op.Kind == faulty.Get {
							n.Add(1)
						}
						return faulty.Fault{}
					}
				}))
				time.Sleep(ttl / 7)
				synctest.Wait()
			}
			time.Sleep(2 * ttl)
			n.Store(0)
			const periods = 10
			time.Sleep(periods * ttl)
			perTTL = float64(n.Load()) / float64(candidates) / periods
			for _, p := range all {
				p.end()
			}
		})
		return perTTL
	}
	few, many := count(10), count(50)
	t.Logf("reads per candidate in a TTL: %.1f of 10, %.1f of 50", few, many)
	if many > few+1 {
		t.Errorf("a candidate reads %.1f times in a TTL when there are 50, and %.1f times when there are 10", many, few)
	}
}
