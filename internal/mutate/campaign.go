package mutate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// Campaign tries mutants of targets.
type Campaign struct {
	Root    string
	Dir     string // a folder of its own, for what it builds
	Most    int    // of the mutants of a target: how many are tried, drawn by Seed
	Seed    uint64
	Workers int
	Own     bool // run the first suite of a target only
	Log     func(format string, args ...any)
}

// Result is what came of a target's mutants.
type Result struct {
	Dir       string
	Made      int // by rote
	Viable    int // of them: those that compile
	Tried     int
	Killed    int // a test failed
	TimedOut  int // counted as killed: the tests would hang
	Survivors []Mutant
	Took      time.Duration
}

// Try makes the mutants of a target and runs its tests with each.
func (c *Campaign) Try(t Target) (Result, error) {
	began := clock.System().Now()
	r := Result{Dir: t.Dir}
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
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	mutants = mutants[:min(c.Most, len(mutants))]
	r.Tried = len(mutants)
	alive := mutants
	for i, s := range t.Suites {
		if len(alive) == 0 || c.Own && i > 0 {
			break
		}
		p, err := c.prepare(fmt.Sprintf("suite%d", i), overlay, s)
		if err != nil {
			return r, err
		}
		c.Log("%s: %d mutants by the tests of %s, which take %.1f s", t.Dir, len(alive), s.Dir, p.took.Seconds())
		alive = c.survivors(p, alive, &r)
	}
	slices.SortFunc(alive, func(a, b Mutant) int {
		if d := strings.Compare(a.File, b.File); d != 0 {
			return d
		}
		return a.Line - b.Line
	})
	r.Survivors, r.Took = alive, clock.System().Now().Sub(began)
	return r, nil
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
			if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") && !platform.MatchString(n) {
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
		all = append(all, s.generate()...)
	}
	for i := range all {
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

// prepared is a suite's test binary.
type prepared struct {
	binary, dir, run string
	took             time.Duration // without a mutant
}

func (c *Campaign) prepare(name, overlay string, s Suite) (prepared, error) {
	p := prepared{binary: filepath.Join(c.Dir, name), dir: filepath.Join(c.Root, s.Dir), run: s.Run}
	if text, err := c.run("", "go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", p.binary, "./"+s.Dir); err != nil {
		return p, fmt.Errorf("build the tests of %s: %w: %.2000s", s.Dir, err, text)
	}
	began := clock.System().Now()
	if text, err := c.test(p, "", 5*time.Minute); err != nil {
		return p, fmt.Errorf("the tests of %s fail without a mutant: %w: %.2000s", s.Dir, err, text)
	}
	p.took = clock.System().Now().Sub(began)
	return p, nil
}

// test runs a suite with a mutant. The error of tests that hang matches [context.DeadlineExceeded].
func (c *Campaign) test(p prepared, mutant string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tmp, err := os.MkdirTemp(c.Dir, "tmp")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // it is in Dir, which is removed
	cmd := exec.CommandContext(ctx, p.binary, "-test.short", "-test.failfast", "-test.run="+p.run)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), Env+"="+mutant, "TMPDIR="+tmp)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(out), err
}

// survivors runs a suite with each of the mutants, and returns those that it doesn't notice, in the order in which they were.
func (c *Campaign) survivors(p prepared, mutants []Mutant, r *Result) []Mutant {
	limit := 5*time.Second + 5*p.took
	var mu sync.Mutex
	var group sync.WaitGroup
	lives := make([]bool, len(mutants))
	next := 0
	for range c.Workers {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(mutants) {
					return
				}
				_, err := c.test(p, mutants[i].Name, limit)
				mu.Lock()
				switch {
				case err == nil:
					lives[i] = true
				case errors.Is(err, context.DeadlineExceeded):
					r.TimedOut++
				default:
					r.Killed++
				}
				if i%100 == 99 {
					c.Log("%s: %d of %d", p.dir, i+1, len(mutants))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var alive []Mutant
	for i, m := range mutants {
		if lives[i] {
			alive = append(alive, m)
		}
	}
	return alive
}

func (c *Campaign) run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(c.Root, dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
