//go:build amd64 || arm64

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
)

// released builds the program as a release has it, where a guard waits before its runtime starts.
func (p place) released() string {
	p.t.Helper()
	exe := p.path("leasehold")
	// As packages are built, so that what is compiled is compiled once.
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w -E _leasehold_entry", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// standing returns which signals a process ignores, a bit for each, whether it catches any, and what it calls itself.
func standing(t *testing.T, pid int) (ignored uint64, catches bool, name string) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	signals := map[string]uint64{"SigIgn": 0, "SigCgt": 0}
	for line := range strings.Lines(string(status)) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if _, is := signals[field]; is {
			if signals[field], err = strconv.ParseUint(value, 16, 64); err != nil {
				t.Fatal(err)
			}
		}
		if field == "Name" {
			name = value
		}
	}
	return signals["SigIgn"], signals["SigCgt"] != 0, name
}

func TestGuardsOfAReleasedProgram(t *testing.T) {
	exe := newPlace(t).released()
	t.Run("they wait before their runtime starts", func(t *testing.T) { guardsWait(t, exe) })
	t.Run("a supervisor killed in its first moments leaves nothing", func(t *testing.T) { killedEarly(t, exe) })
}

// Before its runtime starts a guard waits, safe from signals, for no longer than a moment, and not at all once its supervisor is gone.
func guardsWait(t *testing.T, exe string) {
	p := newPlace(t)
	var want uint64
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
		want |= 1 << (sig - 1)
	}
	// start starts a guard, sends it signals as soon as it ignores them, and returns when its runtime has started: after what time, and
	// whether it was seen to ignore them before.
	start := func(argv []string) (took time.Duration, safe bool) {
		cmd := exec.Command(exe)
		cmd.Args, cmd.Env = argv, leaseguard.Environ()
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		guard := p.launch(cmd)
		for name, sent := "", false; name != leaseguard.Name; {
			var signals uint64
			var runtime bool
			if signals, runtime, name = standing(t, cmd.Process.Pid); signals&want == want && !sent {
				sent, safe = true, !runtime
				guard.signal(syscall.SIGTERM)
				guard.signal(syscall.SIGHUP)
			}
			if took = time.Since(began); took > patienceOfTests {
				t.Fatal("no guard yet")
			}
		}
		_ = in.Close()
		if code := guard.code(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		return took, safe
	}
	const wait, tries = 50 * time.Millisecond, 20 // some are late on a busy machine
	seen, fastest := false, time.Hour
	for range tries {
		took, safe := start(leaseguard.Argv())
		if seen = seen || safe; took < wait {
			t.Errorf("its runtime started after %v", took)
		}
		took, _ = start(leaseguard.ArgvAtOnce())
		fastest = min(fastest, took)
	}
	if !seen {
		t.Error("none ignored signals before its runtime started")
	}
	if fastest >= wait {
		t.Errorf("the fastest guard in another's place started after %v", fastest)
	}
	// What a supervisor that is gone at once left is ended at once.
	fastest = time.Hour
	for i := range tries {
		mark := fmt.Sprintf("the mark of try %d.", i)
		work := exec.Command("sleep", "1000")
		work.Env = []string{"MARK=" + mark}
		w := p.launch(work)
		cmd := exec.Command(exe)
		cmd.Args, cmd.Env, cmd.Stdin = leaseguard.Argv(), leaseguard.Environ(), bytes.NewBufferString(leaseguard.Scope{Mark: mark}.Line())
		began := time.Now()
		p.launch(cmd)
		w.code()
		fastest = min(fastest, time.Since(began))
	}
	if fastest >= wait {
		t.Errorf("what was left lived for %v", fastest)
	}
}

// A supervisor that is killed within the first moments leaves nothing, not even what has left the command's group and session.
func killedEarly(t *testing.T, exe string) {
	p := newPlace(t)
	for i := range 20 {
		name := fmt.Sprint("pid", i)
		cmd := p.command("run", fmt.Sprint("job", i), "--", "sh", "-c", "setsid sleep 1000 & echo $! >"+name+"; wait")
		cmd.Path = exe
		run := p.launch(cmd)
		pid := p.pid(name)
		time.Sleep(time.Duration(i) * 4 * time.Millisecond) // before, in and after the guards' wait
		run.signal(syscall.SIGKILL)
		run.code()
		eventually(t, "the end of what a killed supervisor left", func() bool { return !runs(pid) })
	}
}
