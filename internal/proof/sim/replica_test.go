package sim_test

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/sim"
)

// Whatever a failover loses that the primary showed, nobody held a name by it.
func TestFinding_S5_FailoversInTheSimulator(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() || raceDetector {
		seeds = 20
	}
	faults := map[string]int{}
	for seed := uint64(1); seed <= seeds; seed++ {
		r := sim.Run(sim.Draw(seed).WithFailovers(), sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d with failovers: %v", seed, v)
		}
		for kind, n := range r.Stats.Faults {
			faults[kind] += n
		}
	}
	for _, kind := range []string{"replica cut off", "failover", "answer withheld for the replica"} {
		t.Logf("%s: %d times", kind, faults[kind])
		if faults[kind] < int(seeds) {
			t.Errorf("%s: only %d times", kind, faults[kind])
		}
	}
}
