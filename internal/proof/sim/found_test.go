package sim_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/proof/sim"
)

// Each bug in docs/bugs.md is found again by its seed when its rule is off, in a build with seeded bugs, and by none when it is on.
func TestFoundBugs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 9 {
		t.Fatalf("%d bugs in the table", len(rows))
	}
	for _, row := range rows {
		t.Run(row[1]+"/"+row[2], func(t *testing.T) {
			rule := seeded.Rule(row[1])
			seed, err := strconv.ParseUint(row[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			cfg := sim.Draw(seed).Aim(rule)
			for _, v := range sim.Run(cfg, sim.Options{}).Violations {
				t.Error(v)
			}
			if !seeded.Built {
				return
			}
			without(t, rule)
			if r := sim.Run(cfg, sim.Options{}); len(r.Violations) == 0 {
				t.Errorf("not found again: go run ./internal/proof/mutate/cmd/seeded go run ./internal/proof/sim/cmd/bugs -rule %s names another seed", rule)
			} else {
				t.Log(r.Violations[0])
			}
		})
	}
}
