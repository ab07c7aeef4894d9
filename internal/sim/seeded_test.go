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

// aims are kinds of runs in which what a rule is for happens often enough to be found in seconds. The command bugs finds it
// without, in more.
var aims = map[rules.Rule]func(*sim.Config){
	rules.RuleOfferToken: func(c *sim.Config) {
		*c = sim.Config{Seed: c.Seed, Nodes: 3, Names: 1, TTL: 30 * time.Second, Duration: 15 * time.Minute}
		c.Chance.HandOver, c.Chance.Restore, c.Chance.Pause = 0.9, 0.02, 0.01
	},
	rules.RuleSessionPoll: func(c *sim.Config) {
		*c = sim.Config{Seed: c.Seed, Nodes: 3, Names: 1, Sessions: true, TTL: c.TTL, Duration: 8 * c.TTL}
		c.Chance.Clone, c.Chance.Break, c.Chance.DropReply = 0.05, 0.02, 0.2
	},
	rules.RuleSettle: func(c *sim.Config) {
		*c = sim.Config{Seed: c.Seed, Nodes: 2, Names: 1, Sessions: true, TTL: c.TTL, Duration: 8 * c.TTL}
		c.Chance.Outage, c.Chance.Reject = 0.3/c.TTL.Seconds(), 0.2
	},
}

// aimed returns the run of a seed, aimed at a rule.
func aimed(rule rules.Rule, seed uint64) sim.Config {
	c := sim.Draw(seed)
	if aim := aims[rule]; aim != nil {
		aim(&c)
	}
	return c
}

// Each safety rule is there for something: without it, the simulator or the model check finds a violation. A rule whose
// removal nothing notices is needless, or untested.
func TestEveryRuleIsNeeded(t *testing.T) {
	defer rules.SwitchOff("")
	for _, rule := range rules.Rules {
		t.Run(string(rule), func(t *testing.T) {
			rules.SwitchOff(rule)
			start := time.Now()
			how := noticed(rule, 800, 40_000)
			if how == "" {
				t.Error("nothing notices that it is gone")
			}
			t.Logf("%.1f s: %s", time.Since(start).Seconds(), how)
		})
	}
}

// What an aimed run finds has to be the rule's absence.
func TestAimedRunsAreClean(t *testing.T) {
	rules.SwitchOff("")
	for rule := range aims {
		for seed := uint64(1); seed <= 100; seed++ {
			for _, v := range sim.Run(aimed(rule, seed), sim.Options{}).Violations {
				t.Errorf("aimed at %s, seed %d: %v", rule, seed, v)
			}
		}
	}
}

// noticed looks for a violation among so many seeds, and then so many states of each world.
func noticed(rule rules.Rule, seeds, states uint64) string {
	for seed := uint64(1); seed <= seeds; seed++ {
		if r := sim.Run(aimed(rule, seed), sim.Options{}); len(r.Violations) > 0 {
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
