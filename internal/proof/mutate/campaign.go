package mutate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// Campaign tries mutants of targets.
type Campaign struct {
	Root    string
	Dir     string // a folder of its own, for what it builds
	Cache   string // a folder that keeps what came of mutants
	Most    int    // of the mutants of a target: how many are tried, drawn by Seed
	Seed    uint64
	Workers int
	Spare   Judged // survivors that are not tried again
	// How long the tests of a suite that are run with one mutant take, at most: the quickest of
	// those that reach it.
	Longest time.Duration
	Log     func(format string, args ...any)
}

// Result is what came of a target's mutants.
type Result struct {
	Dir       string
	Made      int // by rote
	Viable    int // of them: those that compile
	Tried     int
	Kept      int // runs of a suite that the cache spared
	Killed    int // a test failed
	TimedOut  int // counted as killed: the tests would hang
	Survivors []Mutant
	Took      time.Duration
	Suites    []Suite
	Note      string
}

// Try makes the mutants of a target and runs its tests with each.
func (c *Campaign) Try(t Target) (Result, error) {
	began := clock.System().Now()
	r := Result{Dir: t.Dir, Suites: t.Suites, Note: t.Note}
	sources, mutants, err := c.generate(t)
	if err != nil {
		return r, err
	}
	r.Made = len(mutants)
	overlay, mutants, err := c.viable(t, sources, mutants)
	if err != nil {
		return r, err
	}
	r.Viable = len(mutants)
	mutants = slices.DeleteFunc(mutants, func(m Mutant) bool { return c.Spare[m.Key()] != "" })
	alive := draw(mutants, c.Seed, c.Most)
	r.Tried = len(alive)
	for i, s := range t.Suites {
		if len(alive) == 0 {
			break
		}
		p, err := c.prepare(fmt.Sprintf("suite%d", i), overlay, s)
		if err != nil {
			return r, err
		}
		c.Log("%s: %d mutants by %d tests of %s, which take %.1f s", t.Dir, len(alive), len(p.tests), s.Dir, took(p.tests).Seconds())
		if alive, err = c.survivors(p, t, s, alive, &r); err != nil {
			return r, err
		}
	}
	r.Survivors, r.Took = alive, clock.System().Now().Sub(began)
	return r, nil
}

// draw draws at most n of the mutants, and leaves them in their order. Each is drawn by its own
// key, so that a change of one function draws no others of the rest.
func draw(mutants []Mutant, seed uint64, n int) []Mutant {
	if n >= len(mutants) {
		return mutants
	}
	rank := map[string]uint64{}
	for _, m := range mutants {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.Key()))
		rank[m.Name] = binary.BigEndian.Uint64(sum[:])
	}
	drawn := slices.SortedFunc(slices.Values(mutants), func(a, b Mutant) int { return cmp.Compare(rank[a.Name], rank[b.Name]) })
	first := rank[drawn[n].Name]
	return slices.DeleteFunc(slices.Clone(mutants), func(m Mutant) bool { return rank[m.Name] >= first })
}

// generate reads the files of a target and makes their mutants.
func (c *Campaign) generate(t Target) (map[string]*source, []Mutant, error) {
	names := t.Files
	if names == nil {
		entries, err := os.ReadDir(filepath.Join(c.Root, t.Dir))
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") && !platform.MatchString(n) && !slices.Contains(t.Spare, n) {
				names = append(names, n)
			}
		}
	}
	sources := map[string]*source{}
	var all []Mutant
	for _, n := range names {
		path := t.Dir + "/" + n
		s, err := read(c.Root, path)
		if err != nil {
			return nil, nil, err
		}
		sources[path] = s
		all = append(all, slices.DeleteFunc(s.generate(), func(m Mutant) bool { return t.Funcs != nil && !slices.Contains(t.Funcs, m.Func) })...)
	}
	same := map[string]int{}
	for i := range all {
		key := all[i].Key()
		if same[key]++; same[key] > 1 {
			all[i].What += fmt.Sprintf(" (%d)", same[key])
		}
		all[i].Name = "m" + strconv.Itoa(i)
		all[i].variant.mutant = all[i].Name
	}
	return sources, all, nil
}

// platform are the names of files that other systems than this one build, which aren't mutated.
var platform = regexp.MustCompile(`_(other|windows|darwin|solaris)\.go$`)

// complaint is a line in which the compiler says where it found an error.
var complaint = regexp.MustCompile(`(?m)([^\s:]+\.go):([0-9]+):[0-9]+: (.*)$`)

// viable writes the overlay with those of the mutants that compile, and returns them.
func (c *Campaign) viable(t Target, sources map[string]*source, mutants []Mutant) (string, []Mutant, error) {
	for range 12 {
		byFile := map[string][]variant{}
		for _, m := range mutants {
			byFile[m.File] = append(byFile[m.File], m.variant)
		}
		out, where := files{}, map[string][]span{}
		for path, of := range byFile {
			out[path], where[filepath.Base(path)] = sources[path].rewrite(of)
		}
		overlay, err := out.write(c.Root, filepath.Join(c.Dir, "overlay"))
		if err != nil {
			return "", nil, err
		}
		text, err := c.run("", "go", "build", "-gcflags=-e", "-overlay="+overlay, "./"+t.Dir)
		if err == nil {
			return overlay, mutants, nil
		}
		bad := map[string]bool{}
		for _, m := range complaint.FindAllStringSubmatch(text, -1) {
			line, _ := strconv.Atoi(m[2]) // the pattern has digits only
			for _, s := range where[filepath.Base(m[1])] {
				if s.from <= line && line <= s.to {
					bad[s.mutant] = true
				}
			}
		}
		if len(bad) == 0 {
			return "", nil, fmt.Errorf("%s with its mutants doesn't compile: %w: %.2000s", t.Dir, err, text)
		}
		mutants = slices.DeleteFunc(mutants, func(m Mutant) bool { return bad[m.Name] })
	}
	return "", nil, fmt.Errorf("%s: its mutants still don't compile", t.Dir)
}

func (c *Campaign) run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(c.Root, dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
