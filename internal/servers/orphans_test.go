//go:build linux

package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestNoServerOutlivesItsTests kills a test program that has servers.
func TestNoServerOutlivesItsTests(t *testing.T) {
	t.Parallel()
	names := ""
	for _, e := range []*engine{redis, postgres, zookeeper} {
		if _, err := e.find(); err != nil {
			fail(t, e, e.missing(err))
		}
		names += e.name + " "
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orphansOf+"="+names[:len(names)-1], "LEASEHOLD_TEST_ORPHANS_DIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "started"; {
		var pid int
		var dir string
		if _, err := fmt.Sscan(lines.Text(), &pid, &dir); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		pids = append(pids, pid)
		pids = append(pids, children(pid)...)
	}
	if len(pids) < 4 { // PostgreSQL has several processes
		t.Fatalf("got the pids %v", pids)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for _, pid := range pids {
		for running(pid) {
			if ctx.Err() != nil {
				signalOne(pid, sigKill)
				t.Errorf("process %d outlived the program that started it", pid)
				break
			}
			pause(tick)
		}
	}
}

// TestPauseAndKillReachEveryProcess looks at all processes of a server that has several.
func TestPauseAndKillReachEveryProcess(t *testing.T) {
	t.Parallel()
	s := Postgres(t)
	pids := append(children(s.process.pid), s.process.pid)
	if len(pids) < 3 {
		t.Fatalf("got the pids %v", pids)
	}
	states := func() (all string) {
		for _, pid := range pids {
			state, _ := status(fmt.Sprintf("/proc/%d/stat", pid))
			all += state
		}
		return all
	}
	every := func(letter string) string {
		all := ""
		for range pids {
			all += letter
		}
		return all
	}
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for states() != every("T") {
		if ctx.Err() != nil {
			t.Fatalf("paused processes are in the states %s", states())
		}
		pause(tick)
	}
	s.Resume()
	for states() == every("T") {
		if ctx.Err() != nil {
			t.Fatal("no process goes on")
		}
		pause(tick)
	}
	s.Kill()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d outlived the server", pid)
		}
	}
}
