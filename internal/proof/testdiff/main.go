// Testdiff compares runs of the same tests on two trees, as `go test -json` writes them:
//
//	testdiff NAME=RUN[:RUN…] NAME=RUN[:RUN…]
//
// It prints, as Markdown, how many tests passed, and each test whose outcomes differ or that fails
// on both. The exit code is 1 when a test that passes in each run of the first tree fails in each
// run of the second, or isn't there.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testdiff:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("want NAME=RUN[:RUN…] twice: the tree without the change, and the one with it")
	}
	var trees [2]tree
	for i, arg := range args {
		name, files, _ := strings.Cut(arg, "=")
		trees[i] = tree{name: name, tests: map[string][]string{}}
		for file := range strings.SplitSeq(files, ":") {
			if err := trees[i].read(file); err != nil {
				return err
			}
		}
	}
	return compare(out, trees[0], trees[1])
}

// tree is what became of the tests of one tree.
type tree struct {
	name  string
	runs  int
	tests map[string][]string // the outcomes of a test that a run began, by its package and name
}

// What becomes of a test, of one run or of all.
const (
	passes  = "pass"
	fails   = "fail"
	skips   = "skip"
	cut     = "cut off" // its process ended before it did
	missing = "not there"
	mixed   = "differs from run to run"
)

// read adds a run.
func (t *tree) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	run := map[string]string{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(line, &e) == nil && e.Test != "" {
			name := e.Package + " " + e.Test
			switch e.Action {
			case "run":
				run[name] = cut
			case passes, fails, skips:
				run[name] = e.Action
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(run) == 0 {
		return fmt.Errorf("%s: no test was run", file)
	}
	t.runs++
	for name, outcome := range run {
		t.tests[name] = append(t.tests[name], outcome)
	}
	return nil
}

// of says what became of a test in all runs.
func (t *tree) of(name string) string {
	all := t.tests[name]
	switch {
	case len(all) == 0:
		return missing
	case len(all) < t.runs:
		return mixed
	}
	for _, outcome := range all {
		if outcome != all[0] {
			return mixed
		}
	}
	return all[0]
}

func compare(out io.Writer, before, after tree) error {
	names := slices.Collect(func(yield func(string) bool) {
		for _, t := range []tree{before, after} {
			for name := range t.tests {
				if !yield(name) {
					return
				}
			}
		}
	})
	slices.Sort(names)
	names = slices.Compact(names)
	counts := map[[2]string]int{} // by tree and outcome, subtests left out
	var rows, worse []string
	for _, name := range names {
		was, is := before.of(name), after.of(name)
		if _, sub, _ := strings.Cut(name, " "); !strings.Contains(sub, "/") {
			counts[[2]string{before.name, was}]++
			counts[[2]string{after.name, is}]++
		}
		if was != is || was != passes && was != skips {
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", strings.ReplaceAll(name, "|", `\|`), was, is))
		}
		if was == passes && (is == fails || is == cut || is == missing) {
			worse = append(worse, name)
		}
	}
	fmt.Fprintf(out, "| | runs | %s | %s | %s | %s | %s |\n|---|---:|---:|---:|---:|---:|---:|\n", passes, fails, cut, skips, mixed)
	for _, t := range []tree{before, after} {
		fmt.Fprintf(out, "| %s | %d |", t.name, t.runs)
		for _, outcome := range []string{passes, fails, cut, skips, mixed} {
			fmt.Fprintf(out, " %d |", counts[[2]string{t.name, outcome}])
		}
		fmt.Fprintln(out)
	}
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n| test | %s | %s |\n|---|---|---|\n%s\n", before.name, after.name, strings.Join(rows, "\n"))
	}
	if len(worse) > 0 {
		return fmt.Errorf("%d tests pass %s and not %s: %s", len(worse), before.name, after.name, strings.Join(worse, ", "))
	}
	return nil
}
