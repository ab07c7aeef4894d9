// Bugs switches the safety rules off, one at a time, and looks for what notices: the simulator,
// seed by seed, or the model check. It exits with 1 when a rule's removal goes unnoticed: that rule
// is needless, or untested.
//
//	go run ./internal/proof/mutate/cmd/seeded go run ./internal/proof/sim/cmd/bugs
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/proof/sim"
	"github.com/leasehold/leasehold/internal/proof/sim/model"
)

// finding is how a rule's removal was noticed.
type finding struct {
	Rule    seeded.Rule `json:"rule"`
	By      string      `json:"by"` // "" when nothing noticed
	Seed    uint64      `json:"seed,omitempty"`
	World   string      `json:"world,omitempty"`
	What    string      `json:"what"`
	Seconds float64     `json:"seconds"`
}

func main() {
	seeds := flag.Uint64("seeds", 4000, "how many seeds the simulator tries for each rule")
	states := flag.Uint64("states", 300_000, "how many states of each world the model check tries")
	rule := flag.String("rule", "", "switch off only the rule of this `name`")
	out := flag.String("out", "", "write the findings as JSON into this `file`")
	flag.Parse()
	var all []finding
	missed := 0
	for _, r := range seeded.Rules {
		if *rule != "" && string(r) != *rule {
			continue
		}
		if err := seeded.SwitchOn(string(r)); err != nil {
			fmt.Fprintln(os.Stderr, "bugs:", err)
			os.Exit(64)
		}
		f := bySimulator(r, *seeds)
		if f.By == "" {
			f = byModel(r, *states)
		}
		if f.By == "" {
			missed++
			f.What = "NOT NOTICED"
		}
		all = append(all, f)
		fmt.Printf("%-24s %-10s %6s %5.1f s  %s\n", f.Rule, f.By, where(f), f.Seconds, f.What)
	}
	fmt.Printf("%d of %d seeded bugs caught\n", len(all)-missed, len(all))
	if *out != "" {
		b, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			err = os.WriteFile(*out, append(b, '\n'), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bugs:", err)
			os.Exit(125)
		}
	}
	if missed > 0 || len(all) == 0 {
		os.Exit(1)
	}
}

func where(f finding) string {
	if f.Seed != 0 {
		return fmt.Sprint("seed ", f.Seed)
	}
	return f.World
}

func bySimulator(r seeded.Rule, seeds uint64) finding {
	began := clock.System().Now()
	for seed := uint64(1); seed <= seeds; seed++ {
		if res := sim.Run(sim.Draw(seed).Aim(r), sim.Options{}); len(res.Violations) > 0 {
			return finding{Rule: r, By: "simulator", Seed: seed, What: res.Violations[0].String(), Seconds: since(began)}
		}
	}
	return finding{Rule: r}
}

func byModel(r seeded.Rule, states uint64) finding {
	began := clock.System().Now()
	for _, s := range model.Scopes {
		if res := model.Search(s, states, runtime.NumCPU()); res.Violation != "" {
			return finding{Rule: r, By: "model", World: s.Name, What: res.Violation, Seconds: since(began)}
		}
	}
	return finding{Rule: r}
}

func since(began clock.Instant) float64 { return clock.System().Now().Sub(began).Seconds() }
