package sim_test

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/sim"
)

// Whatever an outsider does to records, two TTLs later no two hold a name: sessions look at what they keep.
func TestFinding_S16_OutsidersInTheSimulator(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() || raceDetector {
		seeds = 20
	}
	faults := map[string]int{}
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := sim.Draw(seed).WithOutsiders()
		cfg.Sessions = true
		r := sim.Run(cfg, sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d with outsiders: %v", seed, v)
		}
		for kind, n := range r.Stats.Faults {
			faults[kind] += n
		}
	}
	for _, kind := range []string{"outsider: deletes a record", "outsider: frees a record", "outsider: touches a record"} {
		t.Logf("%s: %d times", kind, faults[kind])
		if faults[kind] < int(seeds)/8 {
			t.Errorf("%s: only %d times", kind, faults[kind])
		}
	}
}
