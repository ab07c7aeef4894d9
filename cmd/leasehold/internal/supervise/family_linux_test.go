package supervise

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

// supervised runs a script, and ends it with the test.
func supervised(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Clock: clock.System(), Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Gone()
	})
	return p
}

// until blocks until ok. What it waits for comes, or the test binary's time is over.
func until(ok func() bool) {
	for !ok() {
		time.Sleep(time.Millisecond)
	}
}

func exists(pid int) bool { return unix.Kill(pid, 0) == nil }

// ended blocks until a child has ended, and leaves it to be reaped.
func ended(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Waitid(unix.P_PID, pid, &unix.Siginfo{}, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
}

// orphan makes a process whose parent has ended, so that it is a child of this one, and returns its number.
func orphan(t *testing.T, script string) int {
	t.Helper()
	out, err := exec.Command("/bin/sh", "-c", "("+script+") >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// What somebody else here waits for keeps its exit code, however long that one takes, and orphans are reaped meanwhile.
func TestOthersKeepTheirExitCodes(t *testing.T) {
	supervised(t, "sleep 1000")
	cmd := exec.Command("/bin/sh", "-c", "exit 7")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended(t, cmd.Process.Pid)
	for range 3 {
		pid := orphan(t, "exit 3")
		until(func() bool { return !exists(pid) })
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("%v", err)
	}
}

// The same in a crowd.
func TestOthersKeepTheirExitCodesInACrowd(t *testing.T) {
	supervised(t, "while :; do (sleep 0.001 &) ; sleep 0.005; done")
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for range 50 {
				var exit *exec.ExitError
				if err := exec.Command("/bin/sh", "-c", "exit "+strconv.Itoa(n+1)).Run(); !errors.As(err, &exit) || exit.ExitCode() != n+1 {
					t.Errorf("%v, want exit code %d", err, n+1)
				}
			}
		})
	}
	wg.Wait()
}

// What somebody else here waits for is no part of the command: it is neither ended with it, nor waited for.
func TestOthersAreNotEnded(t *testing.T) {
	p := supervised(t, "sleep 1000 & setsid sleep 1000 & wait")
	cmd := exec.Command("/bin/sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Terminate()
	p.Kill()
	until(func() bool { p.Kill(); return closed(p.Gone()) })
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(interface{ Signal() unix.Signal }).Signal() != unix.SIGINT {
		t.Errorf("it ended by %v", err)
	}
}

// Children that were there before the command are reaped, but not ended or waited for.
func TestThoseBeforeAreNotEnded(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	old := orphan(t, "exec sleep 1000")
	p := supervised(t, "exit 0")
	<-p.Gone()
	if !exists(old) {
		t.Fatal("it was ended")
	}
	supervised(t, "sleep 1000")
	if err := unix.Kill(old, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	until(func() bool { return !exists(old) })
}

// The command isn't reaped with the rest: its status would be lost.
func TestTheCommandIsNotReapedWithTheRest(t *testing.T) {
	proc, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFamily(clock.System())
	f.blind = false
	pid := proc.Pid
	if err := proc.Release(); err != nil {
		t.Fatal(err)
	}
	ended(t, pid)
	f.reap(pid)
	if !exists(pid) {
		t.Error("it was reaped")
	}
	f.reap(0)
	if exists(pid) {
		t.Error("it was not reaped")
	}
}

// Where the kernel doesn't tell whose a child is, one that has ended is nobody's after a while only, and doesn't count meanwhile.
func TestReapingBlindly(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	clk := clocktest.New(0)
	f := newFamily(clk)
	f.blind = true
	pid := orphan(t, "exec sleep 1000")
	if got := f.orphans(); len(got) != 1 || got[0] != pid {
		t.Errorf("%v, want %d", got, pid)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, pid)
	if got := f.orphans(); len(got) > 0 {
		t.Errorf("%v have ended", got)
	}
	f.reap(0)
	f.reap(0)
	if !exists(pid) {
		t.Error("it was reaped at once")
	}
	clk.Jump(unclaimed)
	f.reap(0)
	if exists(pid) {
		t.Error("it was not reaped")
	}
}
