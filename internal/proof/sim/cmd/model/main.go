// Model searches the small worlds of the model check, and says what it found: states, depth, and
// the transitions that were never taken. It exits with 1 when an invariant was broken, or when a
// transition that has to be taken never was.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/sim/model"
)

// summary is what came of it, as -out writes it.
type summary struct {
	States  uint64         `json:"states"`
	Reports []model.Report `json:"reports"`
	// Transitions that should have been taken and never were.
	Missing []string `json:"missing"`
	Unmet   []string `json:"unmet"` // outcomes that no hold ever met
	taken   map[model.Transition]uint64
}

func main() {
	states := flag.Uint64("states", 11_000_000, "stop after about so many `states` in all")
	scope := flag.String("scope", "", "search only the world of this `name`")
	workers := flag.Int("workers", runtime.NumCPU(), "how many workers")
	verbose := flag.Bool("v", false, "print the transitions that were taken")
	out := flag.String("out", "", "write a summary as JSON into this `file`")
	flag.Parse()

	var scopes []model.Scope
	for _, s := range model.Scopes {
		if *scope == "" || *scope == s.Name {
			scopes = append(scopes, s)
		}
	}
	if len(scopes) == 0 || *workers < 1 {
		fmt.Fprintf(os.Stderr, "model: no world is called %q, or no worker\n", *scope)
		os.Exit(64)
	}
	s := summary{taken: map[model.Transition]uint64{}}
	wrong := s.search(scopes, *states, *workers)
	fmt.Printf("%d states in all, %d kinds of transition\n", s.States, len(s.taken))
	if *verbose {
		for t, n := range s.taken {
			fmt.Printf("%12d  %v\n", n, t)
		}
	}
	if *scope == "" {
		s.Unmet = model.Unmet(s.taken)
		for _, what := range s.Unmet {
			fmt.Println("never taken:", what)
		}
		for _, t := range model.Missing(model.Expected, s.taken) {
			fmt.Println("never taken, and should have been:", t)
			s.Missing = append(s.Missing, t.String())
			wrong = true
		}
	}
	if *out != "" {
		b, err := json.MarshalIndent(s, "", "  ")
		if err == nil {
			err = os.WriteFile(*out, append(b, '\n'), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "model:", err)
			os.Exit(125)
		}
	}
	if wrong {
		os.Exit(1)
	}
}

// search shares the states out evenly; what a world that is searched to its end leaves goes to
// those that follow.
func (s *summary) search(scopes []model.Scope, states uint64, workers int) (wrong bool) {
	for i, scope := range scopes {
		began := clock.System().Now()
		r := model.Search(scope, (states-min(s.States, states))/uint64(len(scopes)-i), workers)
		s.States += r.States
		s.Reports = append(s.Reports, r)
		model.Merge(s.taken, r.Taken)
		whole := "cut off at the limit"
		if r.Whole {
			whole = "searched to the end"
		}
		fmt.Printf("%-20s %9d states, %9d steps, depth %2d, %s, %.0f s\n", scope.Name, r.States, r.Steps, r.Depth, whole, clock.System().Now().Sub(began).Seconds())
		if r.Violation != "" {
			wrong = true
			fmt.Println("VIOLATION:", r.Violation)
			for n, line := range r.Story {
				fmt.Printf("%4d. %s\n", n+1, line)
			}
		}
	}
	return wrong
}
