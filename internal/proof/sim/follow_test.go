package sim_test

import (
	"bytes"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/sim"
)

// Programs that wait for a name and for the session that keeps it at once: whatever the store pushes late, out of order or not at all,
// no two hold a name, nobody takes a push for more than it is, and when the faults are over everybody has a turn.
func TestFinding_N1_FollowersInTheSimulator(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() || raceDetector {
		seeds = 40
	}
	faults, terms := map[string]int{}, 0
	for seed := uint64(1); seed <= seeds; seed++ {
		r := sim.Run(sim.DrawFollowed(seed), sim.Options{})
		for _, v := range r.Violations {
			t.Errorf("seed %d %v\n\tgo run ./internal/proof/sim/cmd/sim -followed -seed %d -trace", seed, v, seed)
		}
		for kind, n := range r.Stats.Faults {
			faults[kind] += n
		}
		terms += r.Stats.Terms
	}
	if terms < 10*int(seeds) {
		t.Errorf("too little happened: %d terms", terms)
	}
	for _, kind := range []string{
		"pushed change: counts as a read", "pushed change: in doubt", "pushed change: lost", "pushed change: a session lives", "late message", "crash",
	} {
		t.Logf("%s: %d times", kind, faults[kind])
		if faults[kind] < int(seeds) {
			t.Errorf("%s: only %d times", kind, faults[kind])
		}
	}
}

// A seed tells the same story whenever it is told, here, too.
func TestFollowersReplay(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		var first, second bytes.Buffer
		sim.Run(sim.DrawFollowed(seed), sim.Options{Trace: &first})
		sim.Run(sim.DrawFollowed(seed), sim.Options{Trace: &second})
		if first.Len() < 1000 || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("seed %d: two stories, that part at\n%s", seed, parting(first.String(), second.String()))
		}
	}
}
