package servers

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

func TestSharedIsOneServer(t *testing.T) {
	var all [8]*Server
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { all[i] = Redis(t, Shared()) })
	}
	running.Wait()
	for _, s := range all {
		if s.Addr != all[0].Addr {
			t.Errorf("got %s and %s, want one", s.Addr, all[0].Addr)
		}
	}
	if own := Redis(t); own.Addr == all[0].Addr {
		t.Error("who doesn't ask for a shared one got it")
	}
	if other := Redis(t, Shared(), Set("appendfsync", "no")); other.Addr == all[0].Addr {
		t.Error("other options got the same server")
	}
	t.Run("later", func(t *testing.T) { roundTrip(t, Redis(t, Shared()), redisClient{}) })
	roundTrip(t, all[0], redisClient{})
}

func TestServersThatAreUp(t *testing.T) {
	for _, k := range engines {
		t.Run(k.name, func(t *testing.T) {
			if k.secure && testing.Short() {
				t.Skip("short")
			}
			up := k.start(t)
			t.Setenv(up.Variable())
			s := k.start(t, Shared())
			if s.Addr != up.Addr || s.process != nil {
				t.Fatalf("got %s, want the one that is up at %s", s.Addr, up.Addr)
			}
			for name, value := range s.Env {
				if up.Env[name] != value {
					t.Errorf("%s=%q, want %q", name, value, up.Env[name])
				}
			}
			if own := k.start(t); own.Addr == up.Addr {
				t.Error("who wants a server of its own got the one that is up, although the program is installed")
			}
			t.Setenv(variable(k), "!")
			if _, failed, text := ends(t, func(t testing.TB) { k.start(t, Shared()) }); !failed || !strings.Contains(text, variable(k)) {
				t.Errorf("a bad URL: got failed = %t, %q", failed, text)
			}
		})
	}
}

// ends runs f as a test would be run, and returns whether it was skipped, whether it failed, and what it said.
func ends(t *testing.T, f func(testing.TB)) (skipped, failed bool, text string) {
	r := &recorder{TB: t}
	var running sync.WaitGroup
	running.Go(func() { f(r) })
	running.Wait()
	return r.skipped, r.failed, r.text
}

func TestAMissingProgram(t *testing.T) {
	t.Setenv("LEASEHOLD_CACHE", t.TempDir())
	start := func(t testing.TB) { Etcd(t) }
	t.Setenv("LEASEHOLD_TEST_REQUIRE", "")
	if skipped, _, text := ends(t, start); !skipped || !strings.Contains(text, "scripts/engines install etcd") || strings.Contains(text, "\n") {
		t.Errorf("got skipped = %t, %q, want it skipped with one line about what to do", skipped, text)
	}
	t.Setenv("LEASEHOLD_TEST_REQUIRE", "all")
	if _, failed, text := ends(t, start); !failed || !strings.Contains(text, "scripts/engines install etcd") {
		t.Errorf("got failed = %t, %q, want it to fail where all is required", failed, text)
	}
	if skipped, failed, text := ends(t, func(t testing.TB) { Dynalite(t) }); !skipped || failed {
		t.Errorf("got skipped = %t, %q, want dynalite skipped even then", skipped, text)
	}
}

func TestWhatIsOthersIsNotKilled(t *testing.T) {
	shared := func(t testing.TB) { Redis(t, Shared()).Kill() }
	if _, failed, text := ends(t, shared); !failed || !strings.Contains(text, "shared") {
		t.Errorf("a shared server was killed: %q", text)
	}
	up := Redis(t)
	t.Setenv(variable(redis), up.URL)
	t.Setenv("PATH", "/nowhere") // so that none can be started
	t.Setenv("LEASEHOLD_TEST_REQUIRE", "")
	if skipped, _, text := ends(t, func(t testing.TB) { Redis(t).Restart() }); !skipped || !strings.Contains(text, variable(redis)) {
		t.Errorf("got skipped = %t, %q, want it skipped for want of a server of its own", skipped, text)
	}
	t.Setenv("LEASEHOLD_TEST_REQUIRE", "all")
	if _, failed, text := ends(t, func(t testing.TB) { Redis(t).Restart() }); !failed {
		t.Errorf("got failed = %t, %q, want it to fail where all is required", failed, text)
	}
	roundTrip(t, up, redisClient{})
}

func TestTheLogOfAFailedTest(t *testing.T) {
	for _, failed := range []bool{false, true} {
		var r *recorder
		t.Run("", func(t *testing.T) {
			r = &recorder{TB: t, failed: failed}
			Redis(r)
		})
		if got := strings.Contains(r.logged, "Ready to accept connections"); got != failed {
			t.Errorf("the test failed: %t; the log was shown: %t", failed, got)
		}
	}
}

// TestWithoutMain runs this program's own test of a shared server as if TestMain did not use Main.
func TestWithoutMain(t *testing.T) {
	pool.Lock()
	dir := pool.dir
	pool.dir = ""
	pool.Unlock()
	defer func() {
		pool.Lock()
		defer pool.Unlock()
		pool.dir = dir
	}()
	if _, failed, text := ends(t, func(t testing.TB) { Redis(t, Shared()) }); !failed || !strings.Contains(text, "servers.Main") {
		t.Errorf("got failed = %t, %q", failed, text)
	}
}

// TestAServerThatEndsAtOnce wants its log in the error.
func TestAServerThatEndsAtOnce(t *testing.T) {
	_, err := Launch(t.Context(), "redis", t.TempDir(), Set("no-such-setting", "1"))
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want an error with what Redis says", err)
	}
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("LEASEHOLD_TEST_REQUIRE") != "all" {
		t.Skip("not tried here: ", err)
	}
}
