package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/proof/sim"
	"github.com/leasehold/leasehold/internal/proof/sim/model"
)

func init() {
	// go run ./internal/proof/mutate/cmd/seeded go test ./internal/proof/sim -run TestLive -live.off session-fenced-first
	flag.Func("live.off", "take the safety rule of this `name` out for TestLive", func(name string) error {
		if !slices.Contains(seeded.Rules, seeded.Rule(name)) {
			return fmt.Errorf("want one of %v", seeded.Rules)
		}
		return seeded.SwitchOn(name)
	})
}

// without takes a rule out until the test is over. It skips a test in a build in which none can be.
func without(t *testing.T, rule seeded.Rule) {
	t.Helper()
	if err := seeded.SwitchOn(string(rule)); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = seeded.SwitchOn("") })
}

// Each safety rule is there for something: without it, the simulator or the model check finds a violation. A rule whose
// removal nothing notices is needless, or untested.
func TestEveryRuleIsNeeded(t *testing.T) {
	for _, rule := range seeded.Rules {
		t.Run(string(rule), func(t *testing.T) {
			without(t, rule)
			start := time.Now()
			how := noticed(rule, 1000, 300_000)
			if how == "" {
				t.Error("nothing notices that it is gone")
			}
			t.Logf("%.1f s: %s", time.Since(start).Seconds(), how)
		})
	}
}

// The simulator runs the driver that production runs: each of the driver's rules, which no hold knows of, is noticed when it is taken
// out there.
func TestFinding_S11_TheSimulatorRunsTheDriver(t *testing.T) {
	for _, rule := range []seeded.Rule{
		seeded.RuleStopFirst, seeded.RuleNotice, seeded.RuleEarlyNotice, seeded.RuleSettle, seeded.RuleSessionTold, seeded.RuleToldOnce,
	} {
		without(t, rule)
		how := noticed(rule, 1000, 0)
		if how == "" {
			t.Errorf("%s: nothing notices that it is gone from internal/drive", rule)
		}
		t.Log(rule, how)
	}
}

// What an aimed run finds has to be the rule's absence, so that with all rules on it finds nothing.
func TestAimedRunsAreClean(t *testing.T) {
	for _, rule := range seeded.Rules {
		for seed := uint64(1); seed <= 60; seed++ {
			c := sim.Draw(seed).Aim(rule)
			if c == sim.Draw(seed) {
				break // TestSeeds looks at those
			}
			for _, v := range sim.Run(c, sim.Options{}).Violations {
				t.Errorf("aimed at %s, seed %d: %v", rule, seed, v)
			}
		}
	}
}

// noticed looks for a violation among so many seeds, and then so many states of each world.
func noticed(rule seeded.Rule, seeds, states uint64) string {
	for seed := uint64(1); seed <= seeds; seed++ {
		if seed == 100 && states > 0 { // some rules show in small worlds at once, and in no run
			for _, s := range model.Scopes {
				if r := model.Search(s, 2_000, 2); r.Violation != "" {
					return fmt.Sprintf("model check, %q: %s", s.Name, r.Violation)
				}
			}
		}
		if r := sim.Run(sim.Draw(seed).Aim(rule), sim.Options{}); len(r.Violations) > 0 {
			return fmt.Sprintf("simulator, seed %d: %v", seed, r.Violations[0])
		}
	}
	for _, s := range model.Scopes {
		if r := model.Search(s, states, 2); r.Violation != "" {
			return fmt.Sprintf("model check, %q: %s", s.Name, r.Violation)
		}
	}
	return ""
}
