//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the test binary a worker when it is started as one.
func TestMain(m *testing.M) {
	if encoded := os.Getenv(workerEnv); encoded != "" {
		if err := runWorker(encoded); err != nil {
			fmt.Fprintln(os.Stderr, "soak worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if testDir, err = os.MkdirTemp("", "leasehold-soak-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(testDir)
		os.Exit(code)
	}))
}

// testDir is a folder for all tests.
var testDir string

func short(t *testing.T, args ...string) (r *report, text string) {
	t.Helper()
	c, err := parseConfig(append([]string{"-procs=10", "-duration=15s", "-ttl=1s"}, args...), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c.Dir = t.TempDir()
	if c.Tools, err = tools(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r, err = run(t.Context(), c, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return r, out.String()
}

// tools builds the programs of supervisors and families, once for all tests.
var tools = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(testDir, "tools")
	return dir, errors.Join(os.Mkdir(dir, 0o700), buildTools(context.Background(), dir))
})

func TestPromisesHoldUnderFaults(t *testing.T) {
	r, text := short(t, "-names=2")
	t.Log(text)
	for _, v := range r.violations {
		t.Error(v)
	}
	if !strings.Contains(text, " 0 orphans, 0 overlaps, ") {
		t.Error("orphans and overlaps are not counted")
	}
	refused := 0
	for _, a := range r.resources {
		refused += a.refused
	}
	if refused == 0 {
		t.Error("no late request came to any guarded resource")
	}
	if strings.Contains(text, "not installed") && os.Getenv("LEASEHOLD_TEST_REQUIRE") != "" {
		t.Error("servers are missing")
	}
}

// The server that leads is killed, and another one leads.
func TestPromisesHoldOverFailovers(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{onEtcd, onPostgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			r, text := short(t, "-names=2", "-procs=5", "-commands=2", "-resources=none", "-engine="+engine)
			t.Log(text)
			for _, v := range r.violations {
				t.Error(v)
			}
			if !strings.Contains(text, "failovers          1;") {
				t.Error("there was no failover")
			}
		})
	}
}

// Without the numbers, the same resources accept late requests, and the soak sees it.
func TestUnfencedResourcesAcceptStaleWrites(t *testing.T) {
	r, text := short(t, "-names=2", "-commands=0", "-bug="+bugUnfenced)
	stale := 0
	for _, a := range r.resources {
		stale += a.stale
	}
	if stale == 0 || len(r.violations) == 0 {
		t.Errorf("it was not noticed:\n%s", text)
	}
}

// TestSeededBugsAreFound shows that the soak can fail: a guarded file that takes any token, holders that don't call Check, and supervisors that
// miss what has left the process group.
func TestSeededBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{bugGuard, bugCheck, bugGroup} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			commands := 0
			if bug == bugGroup {
				commands = 2
			}
			r, text := short(t, "-names=1", "-duration=5m", "-resources=none", "-bug="+bug, fmt.Sprintf("-commands=%d", commands)) // ends with the first violation
			if len(r.violations) == 0 {
				t.Errorf("not found in five minutes:\n%s", text)
			}
		})
	}
}

func TestPlanIsDrawnFromTheSeed(t *testing.T) {
	c := config{Procs: 50, Commands: 8, Names: 5, Duration: 5 * time.Minute, TTL: 2 * time.Second, Seed: 42, Engine: onEtcd}
	a, b := plan(c), plan(c)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("one seed, two plans")
	}
	c.Seed++
	if fmt.Sprint(a) == fmt.Sprint(plan(c)) {
		t.Error("two seeds, one plan")
	}
	kinds := map[faultOf]int{}
	longest := time.Duration(0)
	for _, f := range a {
		kinds[f.kind]++
		if f.kind == faultStop {
			longest = max(longest, f.stopped)
		}
	}
	for _, kind := range append(slices.Clone(familyFaults), faultDelete, faultFree, faultEdit, faultRestore, faultKind) {
		if kinds[kind] < 20 {
			t.Errorf("%d of %s", kinds[kind], kind)
		}
	}
	if len(kinds) != 16 || kinds[faultFailover] != 8 || kinds[faultKill] < 100 || kinds[faultStop] < 100 || kinds[faultBreak] < 50 || longest < 5*time.Second || longest > 6*time.Second {
		t.Errorf("got %v, the longest stop %v", kinds, longest)
	}
}
