//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
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
	goleak.VerifyTestMain(m)
}

func short(t *testing.T, args ...string) (r *report, text string) {
	t.Helper()
	c, err := parseConfig(append([]string{"-procs=10", "-duration=15s", "-ttl=1s"}, args...), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c.Dir = t.TempDir()
	var out bytes.Buffer
	r, err = run(t.Context(), c, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return r, out.String()
}

func TestPromisesHoldUnderFaults(t *testing.T) {
	r, text := short(t, "-names=2")
	t.Log(text)
	for _, v := range r.violations {
		t.Error(v)
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

// Without the numbers, the same resources accept late requests, and the soak sees it.
func TestUnfencedResourcesAcceptStaleWrites(t *testing.T) {
	r, text := short(t, "-names=2", "-bug="+bugUnfenced)
	stale := 0
	for _, a := range r.resources {
		stale += a.stale
	}
	if stale == 0 || len(r.violations) == 0 {
		t.Errorf("it was not noticed:\n%s", text)
	}
}

// TestSeededBugsAreFound shows that the soak can fail: a guarded file that takes any token, and holders that don't call Check.
func TestSeededBugsAreFound(t *testing.T) {
	for _, bug := range []string{bugGuard, bugCheck} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			r, text := short(t, "-names=2", "-duration=5m", "-resources=none", "-bug="+bug) // ends with the first violation
			if len(r.violations) == 0 {
				t.Errorf("not found in five minutes:\n%s", text)
			}
		})
	}
}

func TestPlanIsDrawnFromTheSeed(t *testing.T) {
	c := config{Procs: 50, Names: 5, Duration: 5 * time.Minute, TTL: 2 * time.Second, Seed: 42}
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
		longest = max(longest, f.stopped)
	}
	if len(kinds) != 6 || kinds[faultDelete] < 20 || kinds[faultFree] < 20 || kinds[faultKind] < 20 || kinds[faultKill] < 100 || kinds[faultStop] < 100 || kinds[faultBreak] < 50 || longest < 5*time.Second || longest > 6*time.Second {
		t.Errorf("got %v, the longest stop %v", kinds, longest)
	}
}
