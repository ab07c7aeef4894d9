package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// The timing of these tests: 3.2 s of validity, SIGTERM 2.48 s after a renewal, SIGKILL at 2.88 s, the guard at 3.04 s.
var shortTTL = []string{"--ttl", "4s"}

func runArgsWith(flags []string, name string, cmd ...string) []string {
	return append(append(append([]string{"run", name}, flags...), "--"), cmd...)
}

// A store that can't be written any more: the command, which ignores SIGTERM, is dead before the validity of what was last
// written has ended, and the exit code says that the lease was lost.
func TestPitfall_C1_RealOutage(t *testing.T) { stalltest.Run(t, realOutage) }

func realOutage(t testing.TB) {
	p := newPlace(t)
	run := p.start(runArgsWith(shortTTL, "job", "sh", "-c", "echo $$ >pid; exec ticker ticks stubborn")...)
	p.ticked("ticks")
	ticker := p.pid("pid")
	reader := p.reader()
	restore := p.cutOff()
	rec, written := reader.record("job")
	eventually(t, "the command is killed", func() bool { return strings.Contains(run.stderr.String(), "SIGKILL") })
	if !strings.Contains(run.stderr.String(), "SIGTERM") {
		t.Errorf("killed without SIGTERM: %s", run.stderr)
	}
	eventually(t, "the command is dead", func() bool { return !runs(ticker) })
	if end := written.Add(validity(rec)); p.lastTick("ticks") >= end {
		t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
	}
	restore()
	if code := run.code(); code != cli.ExitLost {
		t.Errorf("exit code %d, want %d", code, cli.ExitLost)
	}
}

// The supervisor itself is stopped, and can't kill: the guard does, before the validity ends.
func TestPitfall_C1_SupervisorStopped(t *testing.T) { stalltest.Run(t, supervisorStopped) }

func supervisorStopped(t testing.TB) {
	p := newPlace(t)
	run := p.start(runArgsWith(shortTTL, "job", "sh", "-c", "ticker ticks stubborn & echo $! >pid; wait")...)
	p.ticked("ticks")
	ticker := p.pid("pid")
	reader := p.reader()
	run.signal(syscall.SIGSTOP)
	rec, written := reader.record("job")
	eventually(t, "the command is killed", func() bool { return !runs(ticker) })
	if end := written.Add(validity(rec)); p.lastTick("ticks") >= end {
		t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
	}
	run.signal(syscall.SIGCONT)
	if code := run.code(); code != cli.ExitLost {
		t.Errorf("exit code %d, want %d", code, cli.ExitLost)
	}
}

// However the lease is lost, the exit code says so, even if the command ends with 0 when it is told to.
func TestPitfall_C2_LossHasItsExitCode(t *testing.T) {
	for name, lose := range map[string]func(place, string){
		"broken": func(p place, token string) { p.must("break", "job", "--token", token, "--yes") },
		"taken":  func(p place, token string) { p.must("release", "job", "--token", token) },
		"outage": func(p place, _ string) { p.cutOff() },
	} {
		t.Run(name, func(t *testing.T) {
			stalltest.Run(t, func(t testing.TB) {
				p := newPlace(t)
				run := p.start(runArgsWith(shortTTL, "job", "sh", "-c",
					`trap "exit 0" TERM; echo $LEASEHOLD_TOKEN >token; while :; do sleep 0.01; done`)...)
				lose(p, p.content("token"))
				if code := run.code(); code != cli.ExitLost {
					t.Errorf("exit code %d, want %d; standard error:\n%s", code, cli.ExitLost, run.stderr)
				}
			})
		})
	}
}

// A name that is broken is free as soon as the command has ended: nobody has to wait for the TTL.
func TestBrokenNameIsFreedWhenTheCommandHasEnded(t *testing.T) {
	p := newPlace(t)
	run := p.start(runArgsWith([]string{"--ttl", "20s"}, "job", "sh", "-c", `echo $LEASEHOLD_TOKEN >token; exec sleep 1000`)...)
	p.must("break", "job", "--token", p.content("token"), "--yes", "--reason", "drill")
	run.code()
	rec, _ := p.reader().record("job")
	if rec.Owner != "" || len(rec.Past) != 1 || !strings.HasPrefix(rec.Past[0].Why, "broken by ") || !strings.HasSuffix(rec.Past[0].Why, "drill") {
		t.Errorf("the record is %+v: want it free, and its term broken", rec)
	}
}

// Every signal that can be caught reaches the command and its children, and its end by a signal is the exit code.
func TestPitfall_C3_SignalsAreForwarded(t *testing.T) {
	p := newPlace(t)
	var traps []string
	signals := []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGTERM, syscall.SIGXCPU, syscall.SIGVTALRM, syscall.SIGWINCH, syscall.SIGIO,
		syscall.SIGPWR, syscall.SIGSYS, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, 35, 64,
	}
	for _, sig := range signals {
		traps = append(traps, fmt.Sprintf("trap 'echo >got-%d' %d", sig, sig))
	}
	run := p.start("run", "job", "--", "bash", "-c",
		strings.Join(traps, "; ")+"; trap 'echo >cont' CONT; echo >ready; until [ -e done ]; do sleep 0.01; done; kill -USR1 $BASHPID; trap - HUP; kill -HUP $$")
	p.content("ready")
	for _, sig := range signals {
		run.signal(sig)
		p.content(fmt.Sprintf("got-%d", sig))
	}
	run.signal(syscall.SIGCONT)
	p.content("cont")
	p.write("done")
	if code := run.code(); code != 128+int(syscall.SIGHUP) {
		t.Errorf("exit code %d, want %d", code, 128+int(syscall.SIGHUP))
	}
}

// A signal goes to the whole group, not to its leader alone.
func TestPitfall_C3_SignalsReachTheGroup(t *testing.T) {
	p := newPlace(t)
	run := p.start("run", "job", "--", "sh", "-c", `trap : USR1; sh -c 'trap "echo >got; exit" USR1; echo >ready; while :; do sleep 0.01; done'; exit 5`)
	p.content("ready")
	run.signal(syscall.SIGUSR1)
	p.content("got")
	if code := run.code(); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
}

// What nohup ignores stays ignored.
func TestPitfall_C3_NohupIsRespected(t *testing.T) {
	p := newPlace(t)
	cmd := p.command("run", "job", "--", "sh", "-c", "echo >ready; until [ -e done ]; do sleep 0.01; done")
	cmd.Args = append([]string{"nohup"}, cmd.Args...)
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = nohup
	run := p.launch(cmd)
	p.content("ready")
	run.signal(syscall.SIGHUP)
	p.write("done")
	if code := run.code(); code != 0 {
		t.Errorf("exit code %d, want 0; standard error:\n%s", code, run.stderr)
	}
}

// What a command leaves behind is gone before the name is free: in its group, and in a session of its own.
func TestPitfall_C3_NoOrphans(t *testing.T) {
	for _, how := range []string{"", "setsid "} {
		for _, stubborn := range []string{"", "stubborn"} {
			p := newPlace(t)
			run := p.start("run", "job", "--kill-after", "200ms", "--", "sh", "-c",
				fmt.Sprintf(`%ssh -c 'echo $$ >pid; exec ticker ticks %s' & until [ -s ticks ]; do sleep 0.01; done; exit 6`, how, stubborn))
			if code := run.code(); code != 6 {
				t.Errorf("exit code %d, want 6", code)
			}
			if pid := p.pid("pid"); runs(pid) {
				t.Errorf("%q, %q: process %d still runs", how, stubborn, pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			rec, written := p.reader().record("job")
			if rec.Owner != "" || p.lastTick("ticks") > written {
				t.Errorf("%q, %q: it ran on for %v after the release", how, stubborn, p.lastTick("ticks").Sub(written))
			}
		}
	}
}

// The supervisor is killed: the command and its children die.
func TestPitfall_C4_SupervisorKilled(t *testing.T) {
	p := newPlace(t)
	run := p.start("run", "job", "--", "sh", "-c", "echo $$ >parent; ticker ticks stubborn & echo $! >child; wait")
	p.ticked("ticks")
	parent, child := p.pid("parent"), p.pid("child")
	run.signal(syscall.SIGKILL)
	eventually(t, "the command is dead", func() bool { return !runs(parent) })
	eventually(t, "its child is dead", func() bool { return !runs(child) })
}

// Supervisor and guard are killed: the kernel kills the command.
func TestPitfall_C4_KernelKillsTheCommand(t *testing.T) {
	p := newPlace(t)
	run := p.start("run", "job", "--", "sh", "-c", "echo $$ >pid; exec ticker ticks stubborn")
	p.ticked("ticks")
	pid := p.pid("pid")
	for _, child := range childrenOf(t, run.cmd.Process.Pid) {
		if child != pid {
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	run.signal(syscall.SIGKILL)
	eventually(t, "the command is dead", func() bool { return !runs(pid) })
}

// After the holder was killed, who waits has the name long before its TTL has passed, and not before all that the holder has started
// is gone. So has who comes then.
func TestTakeoverAfterKill(t *testing.T) { stalltest.Run(t, takeoverAfterKill) }

func takeoverAfterKill(t testing.TB) {
	p := newPlace(t)
	run := p.start("run", "--ttl", "1m", "job", "--", "ticker", "ticks")
	p.ticked("ticks")
	waiter := p.start("run", "--ttl", "1m", "job", "--", "sh", "-c", "echo >waited; exec sleep 1000")
	eventually(t, "it waits", func() bool { return strings.Contains(waiter.stderr.String(), "waiting for job") })
	killed := clock.System().Now()
	run.signal(syscall.SIGKILL)
	p.content("waited")
	taken := clock.System().Now()
	if took := taken.Sub(killed); took > 20*time.Second {
		t.Errorf("taken over after %v", took)
	} else {
		t.Logf("taken over after %v", took)
	}
	if last := p.lastTick("ticks"); last > taken {
		t.Errorf("the killed one's command ran for %v beside the next one's", last.Sub(taken))
	}
	waiter.signal(syscall.SIGKILL)
	<-waiter.ended
	if code := p.start("run", "-w", "20s", "job", "--", "true").code(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Fifty short runs at once never overlap, and each runs.
func TestShortRunsNeverOverlap(t *testing.T) {
	const runs = 50
	p := newPlace(t)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			cmd := p.command("run", "job", "-q", "--", "sh", "-c", fmt.Sprintf(`echo "begin %d" >>log; sleep 0.01; echo "end %d" >>log`, i, i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("run %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSpace(p.read("log")), "\n")
	if len(lines) != 2*runs {
		t.Fatalf("%d lines, want %d", len(lines), 2*runs)
	}
	for i := 0; i < len(lines); i += 2 {
		if who, ok := strings.CutPrefix(lines[i], "begin "); !ok || lines[i+1] != "end "+who {
			t.Fatalf("two at once: %q, %q", lines[i], lines[i+1])
		}
	}
}

// An interrupt while waiting ends the program with 130, and leaves the name to whoever holds it.
func TestInterruptWhileWaiting(t *testing.T) {
	p := newPlace(t)
	holder := p.start("run", "job", "--", "sh", "-c", "echo $LEASEHOLD_HOLDER >holder; until [ -e done ]; do sleep 0.01; done")
	owner := p.content("holder")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		waiter := p.start("run", "job", "--", "sh", "-c", "echo >ran")
		eventually(t, "it waits", func() bool { return strings.Contains(waiter.stderr.String(), "waiting for job: held by "+owner) })
		waiter.signal(sig)
		if code := waiter.code(); code != 128+int(sig) {
			t.Errorf("exit code %d, want %d; standard error:\n%s", code, 128+int(sig), waiter.stderr)
		}
	}
	p.write("done")
	if code := holder.code(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	rec, _ := p.reader().record("job")
	if rec.Owner != "" || len(rec.Past) != 1 {
		t.Errorf("the record is %+v: want it free after one term", rec)
	}
	if _, err := os.Stat(p.path("ran")); err == nil {
		t.Error("an interrupted one ran")
	}
}

// A process that is stopped while it holds the lock of the file: nothing hangs without a word.
func TestStoreIsLocked(t *testing.T) {
	p := newPlace(t)
	p.must("run", "job", "--", "true")
	p.cutOff()
	run := p.start("run", "-w", "10s", "job", "--", "true")
	if code := run.code(); code != cli.ExitConflict || !strings.Contains(run.stderr.String(), "which another process holds") {
		t.Errorf("exit code %d, want %d; standard error:\n%s", code, cli.ExitConflict, run.stderr)
	}
	waiter := p.start("run", "job", "--", "true")
	eventually(t, "it waits", func() bool { return strings.Contains(waiter.stderr.String(), "which another process holds") })
	waiter.signal(syscall.SIGINT)
	if code := waiter.code(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}
