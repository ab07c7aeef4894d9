package sim_test

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/sim"
)

// Programs whose leases are kept by sessions at servers: whatever goes wrong, and whatever an outsider does to the records, no two hold a
// name, and when the faults are over everybody has a turn.
func TestFinding_S11_ServedSessionsInTheSimulator(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() || raceDetector {
		seeds = 40
	}
	faults, terms := map[string]int{}, 0
	for seed := uint64(1); seed <= seeds; seed++ {
		r := sim.Run(sim.DrawServed(seed), sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d %v\n\tgo run ./internal/proof/sim/cmd/sim -served -seed %d -trace", seed, v, seed)
		}
		for kind, n := range r.Stats.Faults {
			faults[kind] += n
		}
		terms += r.Stats.Terms
	}
	if terms < 10*int(seeds) {
		t.Errorf("too little happened: %d terms", terms)
	}
	for _, kind := range []string{"served: a session was opened", "served: a session was closed", "served: a break is told", "served: an outsider's deed is told", "heir", "crash", "store outage"} {
		t.Logf("%s: %d times", kind, faults[kind])
		if faults[kind] < int(seeds)/20 {
			t.Errorf("%s: only %d times", kind, faults[kind])
		}
	}
}

// A server that has given up many claims of a name still knows the last of them: it ended a term for an heir, in a write whose outcome it
// did not learn, and waited for ever for that term of its own, which a session kept. Found by `make proof`.
func TestFinding_S11_AServerKnowsItsHeirsClaim(t *testing.T) {
	for _, v := range sim.Run(sim.DrawServed(3531), sim.Options{}).Violations {
		t.Error(v)
	}
}
