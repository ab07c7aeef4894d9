// Mutants tries mutants of the packages that safety depends on, and lists those that no test
// notices; see package mutate.
//
//	go run ./internal/proof/mutate/cmd/mutants                      all packages, into docs/proof.md
//	go run ./internal/proof/mutate/cmd/mutants -n 0 fence lease     every mutant of two, on standard output
//	go run ./internal/proof/mutate/cmd/mutants -strict -spare -n 60 internal/protocol
//
// With -strict it exits with 1 when a survivor isn't judged in internal/proof/mutate/judged.txt.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/mutate"
)

func main() {
	most := flag.Int("n", 300, "how many mutants of each package are tried, drawn at random; 0 is all")
	seed := flag.Uint64("seed", 1, "what they are drawn by")
	workers := flag.Int("workers", 2, "how many are tried at once")
	strict := flag.Bool("strict", false, "fail when a survivor isn't judged")
	spare := flag.Bool("spare", false, "don't try again what is judged")
	longest := flag.Duration("longest", 12*time.Second, "how long the tests of one package that are run with one mutant take without it, at most")
	write := flag.Bool("write", false, "write the report into docs/proof.md")
	flag.Parse()
	if *most == 0 {
		*most = math.MaxInt
	}
	unjudged, err := run(&mutate.Campaign{Most: *most, Seed: *seed, Workers: *workers, Longest: *longest, Log: log}, flag.Args(), *spare, *write)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(125)
	case *strict && unjudged > 0:
		fmt.Fprintf(os.Stderr, "mutants: %d survive and are not judged: write a test that notices, or say in internal/proof/mutate/judged.txt why none can\n", unjudged)
		os.Exit(1)
	}
}

func log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, clock.System().Wall().Format("15:04:05 ")+format+"\n", args...)
}

func run(c *mutate.Campaign, dirs []string, spare, write bool) (unjudged int, err error) {
	if c.Root, err = mutate.Root("."); err != nil {
		return 0, err
	}
	if c.Dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Dir)) }()
	cache, err := os.UserCacheDir()
	if err != nil {
		return 0, err
	}
	c.Cache = filepath.Join(cache, "leasehold-mutants")
	judged, err := mutate.ReadJudged(c.Root)
	if err != nil {
		return 0, err
	}
	if spare {
		c.Spare = judged
	}
	var results []mutate.Result
	targets, err := mutate.Targets(c.Root)
	if err != nil {
		return 0, err
	}
	for _, t := range targets {
		if len(dirs) > 0 && !slices.Contains(dirs, t.Dir) {
			continue
		}
		r, err := c.Try(t)
		if err != nil {
			return 0, err
		}
		log("%s: %d of %d killed in %.0f s", r.Dir, r.Killed+r.TimedOut, r.Tried, r.Took.Seconds())
		results = append(results, r)
	}
	if len(results) == 0 {
		return 0, fmt.Errorf("no such package among the targets: %v", dirs)
	}
	left := judged.Unjudged(results)
	for _, m := range left {
		fmt.Printf("%s:%d: survives, not judged: %s\n", m.File, m.Line, m.Key())
	}
	how := fmt.Sprintf("%s, at most %d mutants of each package, drawn by seed %d", clock.System().Wall().UTC().Format(time.DateOnly), c.Most, c.Seed)
	if c.Most == math.MaxInt {
		how = clock.System().Wall().UTC().Format(time.DateOnly) + ", every mutant"
	}
	report := judged.Report(results, how)
	if !write {
		fmt.Print("\n", report)
		return len(left), nil
	}
	page := filepath.Join(c.Root, "docs/proof.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return 0, err
	}
	return len(left), os.WriteFile(page, []byte(mutate.Replace(string(text), report)), 0o644)
}
