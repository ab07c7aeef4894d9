// Sim runs the simulator over seeds, and says what it found.
//
//	go run ./internal/proof/sim/cmd/sim -n 1000           the seeds 1 to 1000
//	go run ./internal/proof/sim/cmd/sim -seed 17 -trace   the story of one, event by event
//	go run ./internal/proof/sim/cmd/sim -seed 17 -svg run.svg
//
// It exits with 1 when an invariant was broken, and prints the command that replays it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/internal/proof/sim"
)

// draw returns the configuration of a seed.
var draw = sim.Draw

// how are the flags that choose another one.
var how string

// summary is what came of many runs, as -out writes it.
type summary struct {
	Seeds      uint64         `json:"seeds"`
	Hours      float64        `json:"virtual_hours"`
	Stats      sim.Stats      `json:"stats"`
	Violations []violated     `json:"violations"`
	Faults     map[string]int `json:"faults"`
}

type violated struct {
	Seed uint64 `json:"seed"`
	What string `json:"what"`
}

func main() {
	seed := flag.Uint64("seed", 1, "the first seed")
	n := flag.Uint64("n", 1, "how many seeds")
	workers := flag.Int("workers", runtime.NumCPU(), "how many runs at once")
	trace := flag.Bool("trace", false, "print the story of the run, event by event")
	svg := flag.String("svg", "", "draw the run into this `file`")
	out := flag.String("out", "", "write a summary as JSON into this `file`")
	served := flag.Bool("served", false, "the worlds with sessions at servers, and outsiders")
	followed := flag.Bool("followed", false, "the worlds with programs that follow the session which keeps a name")
	flag.Parse()
	switch {
	case *served && *followed:
		fmt.Fprintln(os.Stderr, "sim: -served and -followed are different worlds: want one of them")
		os.Exit(64)
	case *served:
		draw, how = sim.DrawServed, "-served "
	case *followed:
		draw, how = sim.DrawFollowed, "-followed "
	}
	if flag.NArg() > 0 || *n == 0 || *workers < 1 {
		fmt.Fprintln(os.Stderr, "sim: want flags only, and at least one seed and one worker; see -help")
		os.Exit(64)
	}
	var err error
	var s summary
	if *trace || *svg != "" {
		s, err = one(*seed, *trace, *svg)
	} else {
		s = many(*seed, *n, *workers)
	}
	if err == nil {
		err = report(os.Stdout, s, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(125)
	}
	if len(s.Violations) > 0 {
		os.Exit(1)
	}
}

func one(seed uint64, trace bool, svg string) (summary, error) {
	opts := sim.Options{Picture: svg != ""}
	if trace {
		opts.Trace = os.Stdout
	}
	r := sim.Run(draw(seed), opts)
	var s summary
	s.add(r)
	if svg == "" {
		return s, nil
	}
	f, err := os.Create(svg)
	if err != nil {
		return s, err
	}
	if err := r.Picture.SVG(f); err != nil {
		return s, err
	}
	return s, f.Close()
}

func many(first, n uint64, workers int) summary {
	var s summary
	var mu sync.Mutex
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				r := sim.Run(draw(first+i), sim.Options{})
				mu.Lock()
				s.add(r)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(s.Violations, func(a, b violated) int { return int(a.Seed) - int(b.Seed) })
	return s
}

func (s *summary) add(r sim.Result) {
	s.Seeds++
	s.Hours += r.Stats.Virtual.Hours()
	s.Stats.Add(r.Stats)
	if s.Faults == nil {
		s.Faults = map[string]int{}
	}
	for kind, n := range r.Stats.Faults {
		s.Faults[kind] += n
	}
	for _, v := range r.Violations {
		s.Violations = append(s.Violations, violated{r.Seed, v.String()})
	}
}

func report(w io.Writer, s summary, out string) error {
	for _, v := range s.Violations {
		fmt.Fprintf(w, "VIOLATION, seed %d %s\n\tgo run ./internal/proof/sim/cmd/sim %s-seed %d -trace\n", v.Seed, v.What, how, v.Seed)
	}
	fmt.Fprintf(w, "%d seeds, %.1f virtual hours, %d events, %d terms, %d losses, %d guarded writes of which %d refused as stale\n",
		s.Seeds, s.Hours, s.Stats.Events, s.Stats.Terms, s.Stats.Losses, s.Stats.Writes, s.Stats.Refused)
	fmt.Fprint(w, "faults:")
	for i, kind := range slices.Sorted(maps.Keys(s.Faults)) {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, " %s %d", kind, s.Faults[kind])
	}
	fmt.Fprintf(w, "\nviolations: %d\n", len(s.Violations))
	if out == "" {
		return nil
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(b, '\n'), 0o644)
}
