package stalltest

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast is a disk that keeps nobody waiting.
func fast() {}

// A failure is that of the test where the machine was steady, and is told with its place. Clean-ups have run, the latest first, though
// one of them ends early.
func TestFailures(t *testing.T) {
	for name, fail := range map[string]func(testing.TB){
		"fatal": func(t testing.TB) { t.Fatal("broken bone") }, "fatalf": func(t testing.TB) { t.Fatalf("broken %s", "bone") },
		"error": func(t testing.TB) { t.Error("broken bone") }, "errorf": func(t testing.TB) { t.Errorf("broken %s", "bone") },
		"in a clean-up": func(t testing.TB) { t.Cleanup(func() { t.Fatal("broken bone") }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var did []string
			attempts := 0
			failure, _ := judge(t, clocktest.New(0), fast, func(t testing.TB) {
				attempts++
				t.Cleanup(func() { did = append(did, "first") })
				t.Cleanup(func() { did = append(did, "last"); t.FailNow() })
				t.Cleanup(func() {
					if t.Context().Err() == nil {
						t.Error("the context goes on")
					}
				})
				if t.Context().Err() != nil || t.Failed() {
					t.Error("the context has ended, or it has failed")
				}
				time.Sleep(time.Second)
				fail(t)
			})
			if !strings.HasPrefix(failure, "steady_test.go:") || strings.Count(failure, ": broken bone\nsteady_test.go:") != 1 || strings.Count(failure, "\n") != 1 {
				t.Errorf("%s: %s", name, failure)
			}
			if !slices.Equal(did, []string{"last", "first"}) || attempts != 1 {
				t.Errorf("%s: cleaned up %v in %d attempts", name, did, attempts)
			}
		})
	}
}

// stalled is a test under which the machine stalls.
func stalled(f *clocktest.Clock, d time.Duration) {
	f.Pause()
	time.Sleep(d)
	f.Resume()
}

// What failed under a stall is tried again, until the machine is steady, or will never be.
func TestStalls(t *testing.T) {
	for _, c := range []struct {
		stalls, attempts int
		stall            time.Duration
		fails            int // so many attempts
		failure          string
	}{
		{stalls: 2, stall: late + 3*time.Millisecond, fails: 2, attempts: 3},
		{stalls: 2, stall: late + 3*time.Millisecond, fails: 3, attempts: 3, failure: "broken bone"},
		{stalls: 2, stall: late - 3*time.Millisecond, fails: 2, attempts: 1, failure: "broken bone"},
		{stalls: 99, stall: time.Second, fails: 99, attempts: attempts, failure: "the machine stalled in each of 10 attempts, in the last one for 999."},
		{stalls: 99, stall: time.Minute, fails: 99, attempts: 3, failure: "the machine stalled in each of 3 attempts, in the last one for "},
		{stalls: 99, stall: time.Second, attempts: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, n := clocktest.New(0), 0
			failure, _ := judge(t, f, fast, func(t testing.TB) {
				n++
				time.Sleep(time.Second)
				if n <= c.stalls {
					stalled(f, c.stall)
				}
				if n <= c.fails {
					t.Error("broken bone")
				}
			})
			if n != c.attempts || (failure == "") != (c.failure == "") || !strings.Contains(failure, c.failure) {
				t.Errorf("%+v: %d attempts, %s", c, n, failure)
			}
		})
	}
}

// A stall that is shorter than what it has to explain explains nothing.
func TestOver(t *testing.T) {
	for by, attempts := range map[time.Duration]int{150 * time.Millisecond: 2, 250 * time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			f, n := clocktest.New(0), 0
			failure, _ := judge(t, f, fast, func(t testing.TB) {
				if n++; n == 1 {
					stalled(f, 100*time.Millisecond)
					time.Sleep(time.Second)
					stalled(f, 100*time.Millisecond)
					Over(t, by, "late by %v", by)
				}
			})
			if n != attempts || (failure == "") != (attempts == 2) || failure != "" && !strings.HasSuffix(failure, "late by 250ms") {
				t.Errorf("%v: %d attempts, %s", by, n, failure)
			}
		})
	}
}

// A test that is skipped has no further attempt, though the machine stalled.
func TestSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := clocktest.New(0), 0
		failure, skipped := judge(t, f, fast, func(t testing.TB) {
			n++
			stalled(f, time.Second)
			t.Skip("no such device")
		})
		if n != 1 || !skipped || failure != "" {
			t.Errorf("%d attempts, %v, %s", n, skipped, failure)
		}
	})
}

// A disk that stalls is a stall, too.
func TestSlowDisks(t *testing.T) {
	for _, c := range []struct {
		takes    time.Duration // in the first attempt
		attempts int64
	}{{slow - 1, 1}, {slow, 2}} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			takes := func() {
				if n.Load() == 1 {
					time.Sleep(c.takes)
				}
			}
			failure, _ := judge(t, clocktest.New(0), takes, func(t testing.TB) {
				n := n.Add(1)
				time.Sleep(time.Second)
				if n == 1 {
					t.Error("broken bone")
				}
			})
			if n.Load() != c.attempts || (failure == "") != (c.attempts > 1) {
				t.Errorf("%v: %d attempts, %s", c.takes, n.Load(), failure)
			}
		})
	}
}

// The disk of the system takes a byte, and what was written is gone in the end.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	write, done := disk()
	write()
	left := func() int {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := left(); n != 1 {
		t.Errorf("%d files", n)
	}
	done()
	if n := left(); n != 0 {
		t.Errorf("%d files are left", n)
	}
}
