//go:build linux

package servers

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
	for _, pid := range pids {
		t.Cleanup(func() {
			if t.Failed() && running(pid) {
				signalOne(pid, sigKill)
			}
		})
		eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !running(pid) })
	}
}

// TestPauseAndKillReachEveryProcess looks at all processes of a server that has several.
func TestPauseAndKillReachEveryProcess(t *testing.T) {
	t.Parallel()
	s := Postgres(t)
	s.Pause()
	pids := append(children(s.process.pid), s.process.pid) // those of now: its workers come and go while it runs
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
	if all := states(); strings.Trim(all, "TZ") != "" { // or dead, and not reaped
		t.Errorf("paused, they are in the states %s", all)
	}
	s.Resume()
	eventually(t, "all go on", func() bool { return !strings.Contains(states(), "T") })
	s.Kill()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d outlived the server", pid)
		}
	}
}

// TestAKilledServerLeavesNoSharedMemory looks for what only PostgreSQL has.
func TestAKilledServerLeavesNoSharedMemory(t *testing.T) {
	segments := func() map[string]bool {
		text, err := os.ReadFile("/proc/sysvipc/shm")
		if err != nil {
			t.Skip("not tried here: ", err)
		}
		all := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 4 {
				all[words[1]+" made by "+words[4]] = true
			}
		}
		return all
	}
	var made []string
	t.Run("", func(t *testing.T) {
		s := Postgres(t)
		for segment := range segments() {
			if strings.HasSuffix(segment, fmt.Sprintf(" made by %d", s.process.pid)) {
				made = append(made, segment)
			}
		}
		s.Kill()
	})
	if len(made) == 0 {
		t.Fatal("the server has no shared memory: look for something else here")
	}
	after := segments()
	for _, segment := range made {
		if after[segment] {
			t.Errorf("segment %s is still there", segment)
		}
	}
}
