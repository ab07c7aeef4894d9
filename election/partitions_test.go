package election_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
)

// Whatever the network between the candidates and the store does, no two lead under valid terms at one instant (world.lead checks
// that), and when all is well again somebody leads.
func TestPartitions(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				rng := rand.New(rand.NewPCG(seed, 3))
				var all []*process
				for _, name := range []string{"a", "b", "c"} {
					all = append(all, w.candidate(name, election.Options{Priority: rng.IntN(3), FailBack: election.FailBack{After: time.Duration(rng.IntN(60)) * time.Second}}))
				}
				for range 30 {
					p := all[rng.IntN(3)]
					p.Cut()
					time.Sleep(time.Duration(rng.IntN(40)) * time.Second)
					p.Heal()
					time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
				}
				time.Sleep(4 * ttl)
				if l := w.leader(); l.Owner == "" {
					t.Error("nobody leads when all is well")
				}
				if n := strings.Count(w.told(), "leads"); n < 4 {
					t.Errorf("only %d terms", n)
				}
			})
		})
	}
}
