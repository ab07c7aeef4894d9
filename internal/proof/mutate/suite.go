package mutate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// prepared is a suite's test binary, and its tests.
type prepared struct {
	binary, dir string
	flags       []string
	content     string // a hash of all that the tests' outcome depends on
	tests       []test // the quickest first
}

// test is one test of a suite.
type test struct {
	name  string
	took  time.Duration   // by itself, without a mutant
	meets map[string]bool // the mutated functions that it runs
}

func took(tests []test) (sum time.Duration) {
	for _, t := range tests {
		sum += t.took
	}
	return sum
}

// prepare builds a suite, and runs each of its tests without a mutant. One that fails then, twice,
// is left out.
func (c *Campaign) prepare(name, overlay string, s Suite) (prepared, error) {
	p := prepared{binary: filepath.Join(c.Dir, name), dir: filepath.Join(c.Root, s.Dir)}
	if text, err := c.run("", "go", "test", "-c", "-vet=off", "-trimpath", "-overlay="+overlay, "-o", p.binary, "./"+s.Dir); err != nil {
		return p, fmt.Errorf("build the tests of %s: %w: %.2000s", s.Dir, err, text)
	}
	var err error
	if p.content, err = content(p.binary, filepath.Join(p.dir, "testdata")); err != nil {
		return p, err
	}
	list, err := c.run(s.Dir, p.binary, "-test.list="+cmp.Or(s.Run, "."))
	if err != nil {
		return p, fmt.Errorf("list the tests of %s: %w: %.2000s", s.Dir, err, list)
	}
	const tidy = "-rapid.nofailfile" // property tests leave what failed in the checkout
	if _, err := c.run(s.Dir, p.binary, tidy, "-test.list=^$"); err == nil {
		p.flags = []string{tidy}
	}
	for _, name := range strings.Fields(list) {
		if !runs.MatchString(name) {
			continue
		}
		t, text, err := c.trace(p, name)
		if err != nil {
			t, text, err = c.trace(p, name)
		}
		if err != nil {
			c.Log("%s, %s is left out, since it fails without a mutant: %v: %.2000s", s.Dir, name, err, text)
			continue
		}
		p.tests = append(p.tests, t)
	}
	slices.SortStableFunc(p.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return p, nil
}

// runs are the names of what -test.run runs.
var runs = regexp.MustCompile(`^(Test|Example|Fuzz)`)

// trace runs a test without a mutant, and sees what it runs.
func (c *Campaign) trace(p prepared, name string) (test, string, error) {
	t := test{name: name, meets: map[string]bool{}}
	into := filepath.Join(c.Dir, "trace")
	if err := os.RemoveAll(into); err != nil {
		return t, "", err
	}
	began := clock.System().Now()
	text, err := c.test(p, []test{t}, 5*time.Minute, TraceEnv+"="+into)
	t.took = clock.System().Now().Sub(began)
	met, readErr := os.ReadFile(into)
	if errors.Is(readErr, fs.ErrNotExist) {
		readErr = nil // it runs none of them
	}
	for line := range strings.Lines(string(met)) {
		t.meets[strings.TrimSpace(line)] = true
	}
	return t, text, errors.Join(err, readErr)
}

// test runs tests of a suite. The error of tests that hang matches [context.DeadlineExceeded].
func (c *Campaign) test(p prepared, tests []test, limit time.Duration, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tmp, err := os.MkdirTemp(c.Dir, "tmp")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // it is in Dir, which is removed
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	args := append([]string{"-test.short", "-test.failfast", "-test.run=^(" + strings.Join(names, "|") + ")$"}, p.flags...)
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Dir = p.dir
	apart(cmd)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+tmp), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(out), err
}

// batches are the tests that reach a mutant, the quickest first, as they are run in one process
// each: its killer of last time, those that take no time, those that take little, and the rest as
// far as longest allows.
func (p prepared) batches(m Mutant, killer string, longest time.Duration) (all [][]test) {
	var before, instant, quick, slow []test
	sum := time.Duration(0)
	for _, t := range p.tests {
		switch sum += t.took; {
		case !t.meets[m.place()]:
			sum -= t.took
		case t.name == killer:
			before = append(before, t)
		case sum > longest:
			return slices.DeleteFunc([][]test{before, instant, quick, slow}, func(b []test) bool { return len(b) == 0 })
		case t.took < 50*time.Millisecond:
			instant = append(instant, t)
		case t.took < 500*time.Millisecond:
			quick = append(quick, t)
		default:
			slow = append(slow, t)
		}
	}
	return slices.DeleteFunc([][]test{before, instant, quick, slow}, func(b []test) bool { return len(b) == 0 })
}

// failed is how a test binary names the first test that fails.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: ([A-Za-z0-9_]+)`)

// try runs a suite's tests with a mutant.
func (c *Campaign) try(p prepared, m Mutant, killer string) outcome {
	for _, tests := range p.batches(m, killer, c.Longest) {
		text, err := c.test(p, tests, 5*time.Second+5*took(tests), Env+"="+m.Name)
		by := ""
		if found := failed.FindStringSubmatch(text); found != nil {
			by = found[1]
		} else if len(tests) == 1 {
			by = tests[0].name
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return outcome{Is: hung, By: by}
		case err != nil:
			return outcome{Is: killed, By: by}
		}
	}
	return outcome{Is: alive}
}

// content hashes the binary of a suite, which has all sources in it, and its testdata.
func content(binary, testdata string) (string, error) {
	h := sha256.New()
	add := func(path string) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(h, f)
		return errors.Join(err, f.Close())
	}
	err := filepath.WalkDir(testdata, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return add(path)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, add(binary))
	return hex.EncodeToString(h.Sum(nil)), err
}
