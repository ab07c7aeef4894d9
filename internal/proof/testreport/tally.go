package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string // on a package's failure: the ImportPath that did not build
}

// test is one test or subtest.
type test struct {
	pkg, name string
	result    string // pass, fail, skip; "" while it runs
	took      float64
	output    []string
	parent    bool // it has subtests
	childFail bool // one of them failed
}

// group is one package.
type group struct {
	tests  map[string]*test
	order  []*test
	output []string // of the package itself
	cpu    time.Duration
}

// cpuMark begins the line in which the wrapper of a test program says what processor time its
// tests have taken.
const cpuMark = "testreport: processor time "

// load is what a package took.
type load struct {
	pkg       string
	took, cpu time.Duration
}

// tally counts. A test with subtests counts only if it fails although they all passed: the others
// would count twice.
type tally struct {
	out                     io.Writer
	groups                  map[string]*group
	builds                  map[string][]string // output of the compiler by import path
	shown                   map[string]bool     // builds whose output was printed
	all                     []*test
	busy                    []load
	reasons                 map[string]int // for which tests were skipped: of how many
	stories                 []string       // of what failed
	passed, failed, skipped int
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, groups: map[string]*group{}, builds: map[string][]string{}, shown: map[string]bool{}, reasons: map[string]int{}}
}

// read takes in a whole stream. A line that is no event is printed as it is. What is unfinished
// when the stream ends has failed.
func (t *tally) read(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	var err error
	for err == nil {
		var line []byte
		line, err = lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil || e.Action == "":
			_, _ = t.out.Write(line)
		default:
			t.take(e)
		}
	}
	for pkg := range t.groups {
		t.finish(event{Action: "fail", Package: pkg, Output: "the stream of events ended before this package did\n"})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (t *tally) take(e event) {
	switch {
	case e.Action == "build-output":
		t.builds[e.ImportPath] = append(t.builds[e.ImportPath], e.Output)
	case e.Package == "":
	case strings.HasPrefix(e.Output, cpuMark):
		// 0 if it isn't one.
		t.group(e.Package).cpu, _ = time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(e.Output, cpuMark)))
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		t.finish(e)
	case e.Test == "":
		g := t.group(e.Package)
		g.output = append(g.output, e.Output)
	default:
		t.takeTest(e)
	}
}

func (t *tally) group(pkg string) *group {
	g := t.groups[pkg]
	if g == nil {
		g = &group{tests: map[string]*test{}}
		t.groups[pkg] = g
	}
	return g
}

func (t *tally) takeTest(e event) {
	g := t.group(e.Package)
	tt := g.tests[e.Test]
	if tt == nil {
		tt = &test{pkg: e.Package, name: e.Test}
		g.tests[e.Test], g.order = tt, append(g.order, tt)
		for name := e.Test; ; {
			i := strings.LastIndexByte(name, '/')
			if i < 0 {
				break
			}
			name = name[:i]
			if p := g.tests[name]; p != nil {
				p.parent = true
			}
		}
	}
	switch e.Action {
	case "output":
		tt.output = append(tt.output, e.Output)
	case "pass", "fail", "skip":
		tt.result, tt.took = e.Action, e.Elapsed
	}
}

// finish counts a package that has ended and prints its line.
func (t *tally) finish(e event) {
	g := t.group(e.Package)
	delete(t.groups, e.Package)
	passed, failed, skipped := g.count(e.Action == "fail")
	if e.Action == "fail" && failed == 0 {
		failed = 1 // it didn't build, or died outside its tests
	}
	t.passed, t.failed, t.skipped = t.passed+passed, t.failed+failed, t.skipped+skipped
	t.all = append(t.all, g.order...)
	took := time.Duration(e.Elapsed * float64(time.Second)).Round(time.Millisecond)
	t.busy = append(t.busy, load{e.Package, took, g.cpu})
	within := took.String()
	if g.cpu > 0 {
		within += fmt.Sprintf(" (%v of a processor)", g.cpu)
	}
	switch {
	case e.Action == "fail":
		fmt.Fprintf(t.out, "FAIL  %s  %s  %d passed, %d failed, %d skipped\n", e.Package, within, passed, failed, skipped)
		t.explain(g, e)
	case len(g.order) == 0:
		fmt.Fprintf(t.out, "-     %s  no tests\n", e.Package)
	default:
		fmt.Fprintf(t.out, "ok    %s  %s  %d passed, %d skipped\n", e.Package, within, passed, skipped)
	}
	for _, tt := range g.order {
		if tt.result == "skip" {
			t.reasons[tt.reason()]++
		}
	}
}

func (g *group) count(packageFailed bool) (passed, failed, skipped int) {
	for _, tt := range g.order {
		if tt.result == "" && packageFailed {
			// It was running when the process ended: a panic, os.Exit or the time-out.
			tt.result = "fail"
		}
	}
	for _, tt := range slices.Backward(g.order) { // subtests come after their parents
		if i := strings.LastIndexByte(tt.name, '/'); i >= 0 && tt.result == "fail" {
			if p := g.tests[tt.name[:i]]; p != nil {
				p.childFail = true
			}
		}
		switch {
		case tt.result == "fail" && !tt.childFail:
			failed++
		case tt.parent:
		case tt.result == "pass":
			passed++
		case tt.result == "skip":
			skipped++
		}
	}
	return passed, failed, skipped
}

// explain prints all that a failed package has said, but for the tests of it that passed, and keeps
// it for the end.
func (t *tally) explain(g *group, e event) {
	story := "FAIL  " + e.Package + "\n"
	tell := func(output ...string) {
		text := strings.Join(output, "")
		t.print(text)
		story += shortened(text)
	}
	if e.FailedBuild != "" && !t.shown[e.FailedBuild] {
		t.shown[e.FailedBuild] = true
		tell(t.builds[e.FailedBuild]...)
	}
	for _, tt := range g.order {
		if tt.result == "fail" {
			tell(tt.output...)
		}
	}
	tell(append(slices.Clone(g.output), e.Output)...)
	t.stories = append(t.stories, story)
}

func (t *tally) print(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprint(t.out, "      ", line)
	}
}

// Of a long text the end of the report has this many lines of the beginning, where a panic says
// why, and of the end.
const firstLines, lastLines = 120, 80

// shortened leaves out the middle of a long text.
func shortened(text string) string {
	lines := strings.SplitAfter(text, "\n")
	more := len(lines) - firstLines - lastLines
	if more <= 0 {
		return text
	}
	return strings.Join(lines[:firstLines], "") + fmt.Sprintf("… %d lines, which are above\n", more) +
		strings.Join(lines[len(lines)-lastLines:], "")
}

// place is where a test says something.
var place = regexp.MustCompile(`^[^ ]+\.go:[0-9]+: `)

// reason is what a skipped test gave as its reason, without the place where it did.
func (tt *test) reason() string {
	var said []string
	for _, line := range tt.output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, place.ReplaceAllString(line, ""))
		}
	}
	return cmp.Or(strings.Join(said, " "), "no reason given")
}

// summary prints the slowest packages and tests, what failed once more, since of a long log it is
// the end that is kept, the reasons for which tests were skipped, and, last, the counts.
func (t *tally) summary() {
	t.slowest()
	if len(t.stories) > 0 {
		fmt.Fprintln(t.out, "what failed, again:")
	}
	for _, story := range t.stories {
		t.print(story)
	}
	for _, why := range slices.Sorted(maps.Keys(t.reasons)) {
		fmt.Fprintf(t.out, "skipped: %d × %s\n", t.reasons[why], why)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}

func (t *tally) slowest() {
	const most = 10
	packages := slices.DeleteFunc(slices.Clone(t.busy), func(l load) bool { return l.took < time.Second })
	slices.SortStableFunc(packages, func(a, b load) int { return cmp.Compare(b.took, a.took) })
	if len(packages) > 0 {
		fmt.Fprintln(t.out, "slowest packages, and what they took of a processor:")
	}
	var all time.Duration
	for _, l := range t.busy {
		all += l.cpu
	}
	for _, l := range packages[:min(most, len(packages))] {
		fmt.Fprintf(t.out, "  %7.2f s  %7.2f s  %s\n", l.took.Seconds(), l.cpu.Seconds(), l.pkg)
	}
	if all > 0 {
		fmt.Fprintf(t.out, "all packages took %v of a processor\n", all.Round(time.Second))
	}
	tests := slices.DeleteFunc(t.all, func(tt *test) bool { return strings.Contains(tt.name, "/") || tt.took < 0.1 })
	slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Compare(b.took, a.took) })
	if len(tests) > 0 {
		fmt.Fprintln(t.out, "slowest tests:")
	}
	for _, tt := range tests[:min(most, len(tests))] {
		fmt.Fprintf(t.out, "  %7.2f s  %s %s\n", tt.took, tt.pkg, tt.name)
	}
}
