package mutate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Heading begins the part of docs/proof.md that is about mutants, up to its end.
const Heading = "## Mutants"

// judgedFile has the survivors that were judged: the place, the change, and what it amounts to.
const judgedFile = "internal/proof/mutate/judged.txt"

// Judged is why no test notices a mutant, by [Mutant.Key].
type Judged map[string]string

// Key names a mutant in the table of those that were judged.
func (m Mutant) Key() string { return m.place() + ": " + m.What }

// place is the function that a mutant is of.
func (m Mutant) place() string { return m.File + " " + m.Func }

// ReadJudged reads the survivors that were judged: a line with the mutant, and a line that begins
// with a tab and says what it amounts to.
func ReadJudged(root string) (Judged, error) {
	text, err := os.ReadFile(filepath.Join(root, judgedFile))
	if err != nil {
		return nil, err
	}
	j := Judged{}
	key := ""
	for i, line := range strings.Split(string(text), "\n") {
		why, isWhy := strings.CutPrefix(line, "\t")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case !isWhy:
			key = line
		case key == "":
			return nil, fmt.Errorf("%s:%d: a judgement without a mutant before it", judgedFile, i+1)
		default:
			j[key], key = why, ""
		}
	}
	return j, nil
}

// Unjudged returns the survivors that nobody has judged.
func (j Judged) Unjudged(results []Result) (all []Mutant) {
	for _, r := range results {
		for _, m := range r.Survivors {
			if j[m.Key()] == "" {
				all = append(all, m)
			}
		}
	}
	return all
}

// Sum returns the results of all packages as one.
func Sum(results []Result) Result {
	sum := Result{Dir: "**all**"}
	for _, r := range results {
		sum.Made, sum.Viable, sum.Tried = sum.Made+r.Made, sum.Viable+r.Viable, sum.Tried+r.Tried
		sum.Killed, sum.TimedOut = sum.Killed+r.Killed, sum.TimedOut+r.TimedOut
		sum.Survivors = append(sum.Survivors, r.Survivors...)
	}
	return sum
}

// Percent returns how many of the mutants that were tried are killed.
func (r Result) Percent() float64 {
	return 100 * float64(r.Killed+r.TimedOut) / float64(max(r.Tried, 1))
}

// Report returns the part of docs/proof.md about mutants. how says what was tried.
func (j Judged) Report(results []Result, how string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `%s

`+"`make mutants`"+` writes this part. This one: %s.

- A mutant is the code of one function with one change made by rote. Text for people is not mutated, and neither is what another
  mutant implies.
- The tests that run are those of its package, and of the packages that drive it, that reach the function. A mutant that hangs them
  counts as killed.
- Survivors are judged in [judged.txt](../internal/proof/mutate/judged.txt), each with its reason.
- The seeded bugs above are such mutants, too, made by hand.

| package | made | compile | tried | killed | hung | judged | not judged | killed of those not judged, %% |
|---|---|---|---|---|---|---|---|---|
`, Heading, how)
	row := func(r Result) {
		left := len(j.Unjudged([]Result{r}))
		judged := len(r.Survivors) - left
		r.Tried -= judged
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %.1f |\n", r.Dir, r.Made, r.Viable, r.Tried+judged, r.Killed, r.TimedOut, judged, left, r.Percent())
	}
	for _, r := range results {
		row(r)
	}
	row(Sum(results))
	b.WriteString("\n")
	for _, r := range results {
		var by []string
		for _, s := range r.Suites {
			by = append(by, s.String())
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("- %s: by the tests of %s; %.0f s. %s", r.Dir, strings.Join(by, ", "), r.Took.Seconds(), r.Note), " ") + "\n")
	}
	b.WriteString(inCI)
	left := j.Unjudged(results)
	if len(left) == 0 {
		return b.String()
	}
	b.WriteString("\n### Survivors that are not judged\n\n| where | change |\n|---|---|\n")
	for _, m := range left {
		fmt.Fprintf(&b, "| %s, %s | %s |\n", m.File, m.Func, strings.ReplaceAll(m.What, "|", `\|`))
	}
	return b.String()
}

// inCI says which part of it checks each change.
const inCI = `
### In CI

CI tries 80 mutants of each package that scripts/mutants lists, and 40 of internal/drive, internal/lessor and lock, whose tests take
longer. It draws them by seed 1 and by each mutant's own text, so a change draws new ones only where it is. CI fails when a mutant
survives that isn't judged. ` + "`scripts/mutants -n 0 internal/drive`" + ` lists the survivors of all mutants of a package.
`

// String says whose tests a suite's are, and which of them.
func (s Suite) String() string {
	if s.Run == "" {
		return s.Dir
	}
	return s.Dir + " (" + strings.Trim(strings.ReplaceAll(s.Run, "|", ", "), "^$()") + ")"
}

// Replace returns a page with report as its part about mutants.
func Replace(page, report string) string {
	before, _, _ := strings.Cut(page, Heading+"\n")
	return strings.TrimRight(before, "\n") + "\n\n" + report
}
