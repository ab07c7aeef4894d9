//go:build seededbugs

package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/internal/sim"
	"github.com/leasehold/leasehold/internal/sim/model"
)

func init() {
	// go test -tags seededbugs ./internal/sim -run TestLive -live.off session-fenced-first
	flag.Func("live.off", "switch the safety rule of this `name` off for TestLive", func(name string) error {
		if !slices.Contains(rules.Rules, rules.Rule(name)) {
			return fmt.Errorf("want one of %v", rules.Rules)
		}
		rules.SwitchOff(rules.Rule(name))
		return nil
	})
}

// Each safety rule is there for something: without it, the simulator or the model check finds a violation. A rule whose
// removal nothing notices is needless, or untested.
func TestEveryRuleIsNeeded(t *testing.T) {
	defer rules.SwitchOff("")
	began := time.Now()
	for _, rule := range rules.Rules {
		t.Run(string(rule), func(t *testing.T) {
			rules.SwitchOff(rule)
			start := time.Now()
			how := noticed(3000, 60_000)
			if how == "" {
				t.Error("nothing notices that it is gone")
			}
			t.Logf("%.1f s: %s", time.Since(start).Seconds(), how)
		})
	}
	t.Logf("%d rules in %.0f s", len(rules.Rules), time.Since(began).Seconds())
}

// noticed looks for a violation among so many seeds, and then so many states of each world.
func noticed(seeds, states uint64) string {
	for seed := uint64(1); seed <= seeds; seed++ {
		if r := sim.Run(sim.Draw(seed), sim.Options{}); len(r.Violations) > 0 {
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
