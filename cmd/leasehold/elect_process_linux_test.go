package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// candidate starts one that stands for "job" with a short TTL. Its active and passive commands are for the shell.
func (p place) candidate(name, active string, flags ...string) *program {
	p.t.Helper()
	return p.start(append(append([]string{"elect", "job", "--as", name, "--on-active", active}, shortTTL...), flags...)...)
}

// story is what commands have written to the file of that name, a word to a line.
func (p place) story() string {
	p.t.Helper()
	b, err := os.ReadFile(p.path("story"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

func (p place) told(want string) {
	p.t.Helper()
	for deadline := time.Now().Add(patienceOfTests); p.story() != want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("the story is %q, want %q", p.story(), want)
		}
	}
}

// stands waits until candidates of "job" by these names are on the list: one may follow a leader before its own place there is written.
func (p place) stands(names ...string) {
	p.t.Helper()
	st := p.reader().st
	eventually(p.t, strings.Join(names, ", ")+" stand", func() bool {
		state, err := election.ReadState(p.t.Context(), st, "job")
		if err != nil {
			p.t.Fatal(err)
		}
		return !slices.ContainsFunc(names, func(name string) bool {
			return !slices.ContainsFunc(state.Candidates, func(c election.Candidate) bool { return c.Name == name })
		})
	})
}

// tells is an active command that tells of its beginning, and of its end, which takes a while when it is told to.
func tells(name string) string {
	return "trap 'sleep 0.3; echo " + name + "-ends >>story; exit 0' TERM; echo " + name + " >>story; while :; do sleep 0.01; done"
}

// The store is out: the active command, which ignores SIGTERM, is gone before the validity is, and the candidate goes on, and leads
// again when the store is back.
func TestPitfall_C1_RealOutageOfALeader(t *testing.T) { stalltest.Run(t, realOutageOfALeader) }

func realOutageOfALeader(t testing.TB) {
	p := newPlace(t)
	elect := p.candidate("a", "echo $$ >pid; exec ticker ticks stubborn")
	p.ticked("ticks")
	ticker, reader := p.pid("pid"), p.reader()
	restore := p.cutOff()
	rec, written := reader.session()
	eventually(t, "the command is dead", func() bool { return !runs(ticker) })
	if end := written.Add(validity(rec)); p.lastTick("ticks") >= end {
		t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
	}
	if err := os.Remove(p.path("pid")); err != nil {
		t.Fatal(err)
	}
	restore()
	if again := p.pid("pid"); again == ticker {
		t.Error("the same process")
	}
	elect.signal(syscall.SIGTERM)
	if code := elect.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %s", code, elect.stderr)
	}
}

// The supervisor hangs: the guard kills the active command in time.
func TestPitfall_C1_LeaderStopped(t *testing.T) { stalltest.Run(t, leaderStopped) }

func leaderStopped(t testing.TB) {
	p := newPlace(t)
	elect := p.candidate("a", "ticker ticks stubborn & echo $! >pid; wait")
	p.ticked("ticks")
	ticker, reader := p.pid("pid"), p.reader()
	elect.signal(syscall.SIGSTOP)
	rec, written := reader.session()
	eventually(t, "the command is killed", func() bool { return !runs(ticker) })
	if end := written.Add(validity(rec)); p.lastTick("ticks") >= end {
		t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
	}
}

// The leader is killed: its active command dies with it, and then the other leads, without waiting for its TTL.
func TestKilledLeader(t *testing.T) { stalltest.Run(t, killedLeader) }

func killedLeader(t testing.TB) {
	p := newPlace(t)
	a := p.candidate("a", "echo $$ >pid; exec ticker ticks stubborn")
	p.ticked("ticks")
	p.candidate("b", "echo $LEASEHOLD_TOKEN >b", "--on-passive", "echo $LEASEHOLD_LEADER >follows; exec sleep 1000")
	p.content("follows")
	start := time.Now()
	a.signal(syscall.SIGKILL)
	p.content("b")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v: want it at once, and after the TTL, 4 s, at the latest", took)
	}
	if runs(p.pid("pid")) {
		t.Error("the killed leader's command still runs")
	}
}

// A hand-over between two processes: what led has ended before the next begins, though it takes its time, and the token rises.
func TestHandoffBetweenProcesses(t *testing.T) { stalltest.Run(t, handoffBetweenProcesses) }

func handoffBetweenProcesses(t testing.TB) {
	p := newPlace(t)
	p.candidate("a", "echo $LEASEHOLD_TOKEN >token-a; "+tells("a"))
	p.told("a")
	p.candidate("b", "echo $LEASEHOLD_TOKEN >token-b; "+tells("b"), "--on-passive", "echo >follows; exec sleep 1000")
	p.content("follows")
	p.stands("b")
	p.must("handoff", "job", "--to", "b")
	p.told("a a-ends b")
	if a, b := p.content("token-a"), p.content("token-b"); a >= b {
		t.Errorf("token %s, then %s", a, b)
	}
	p.must("pause", "job", "--reason", "drill")
	p.told("a a-ends b b-ends")
	rec, _ := p.reader().record("job")
	if rec.Owner != "" || len(rec.Past) != 2 {
		t.Errorf("the record is %+v: want it free, after two terms", rec)
	}
}

// A signal ends the candidate: first its command, then its term, and the other leads at once.
func TestSignalHandsOver(t *testing.T) { stalltest.Run(t, signalHandsOver) }

func signalHandsOver(t testing.TB) {
	p := newPlace(t)
	a := p.candidate("a", tells("a"))
	p.told("a")
	b := p.candidate("b", tells("b"), "--on-passive", "echo >follows; exec sleep 1000")
	p.content("follows")
	start := time.Now()
	a.signal(syscall.SIGTERM)
	p.told("a a-ends b")
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %v: want less than the TTL, 4 s", took)
	}
	if code := a.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %s", code, a.stderr)
	}
	b.signal(syscall.SIGINT)
	if code := b.code(); code != 128+int(syscall.SIGINT) {
		t.Errorf("exit code %d: %s", code, b.stderr)
	}
	p.told("a a-ends b b-ends")
	reader := p.reader()
	if rec, _ := reader.record("job"); rec.Owner != "" {
		t.Errorf("the record is %+v: want it free", rec)
	}
	for rec, err := range reader.st.List(t.Context(), ".session/") {
		t.Errorf("a session is left behind: %+v, %v", rec, err)
	}
}

// What ignores SIGTERM when it is to step down is killed after --drain. The lease goes on being renewed for as long as that takes, and
// nobody else leads before it is dead.
func TestStubbornLeaderIsKilledAfterTheDrain(t *testing.T) {
	stalltest.Run(t, stubbornLeaderIsKilledAfterTheDrain)
}

func stubbornLeaderIsKilledAfterTheDrain(t testing.TB) {
	p := newPlace(t)
	a := p.candidate("a", "echo $$ >pid; exec ticker ticks stubborn", "--drain", "6s")
	p.ticked("ticks")
	ticker := p.pid("pid")
	p.candidate("b", "ps -o stat= -p "+p.content("pid")+" >dead; echo >b", "--on-passive", "echo >follows; exec sleep 1000")
	p.content("follows")
	p.stands("b")
	start := time.Now()
	p.must("handoff", "job", "--to", "b")
	if took := time.Since(start); took < 6*time.Second || took > 15*time.Second {
		t.Errorf("it took %v, with a drain of 6 s and a TTL of 4 s: %s", took, a.stderr)
	}
	p.content("b")
	if state := strings.TrimSpace(p.read("dead")); state != "" && !strings.HasPrefix(state, "Z") || runs(ticker) {
		t.Errorf("the next leader's command began while the last one's was %s", state)
	}
	a.says("SIGKILL")
	if strings.Contains(a.stderr.String(), "lost") {
		t.Errorf("%s", a.stderr)
	}
}

// The passive command is gone before the active one begins, and is started again for each new leader, whom it is told.
func TestPassiveCommand(t *testing.T) { stalltest.Run(t, passiveCommand) }

func passiveCommand(t testing.TB) {
	p := newPlace(t)
	a := p.candidate("a", tells("a"))
	p.told("a")
	follows := "trap 'echo b-follows-no-more >>story; exit 0' TERM; echo b-follows-${LEASEHOLD_LEADER%%/*}-$LEASEHOLD_ROLE >>story; " +
		"test -z \"$LEASEHOLD_TOKEN\" || echo token >>story; while :; do sleep 0.01; done"
	p.candidate("b", tells("b"), "--on-passive", follows)
	p.told("a b-follows-a-passive")
	a.signal(syscall.SIGTERM)
	a.code()
	p.told("a b-follows-a-passive a-ends b-follows-no-more b")
	p.candidate("c", tells("c"), "--on-passive", "echo >c-follows; exec sleep 1000")
	p.content("c-follows")
	p.stands("c")
	p.must("handoff", "job", "--to", "c")
	eventually(t, "c leads, and b follows", func() bool { // in either order
		story := strings.TrimPrefix(p.story(), "a b-follows-a-passive a-ends b-follows-no-more b b-ends ")
		return story == "c b-follows-c-passive" || story == "b-follows-c-passive c"
	})
}

// A command that ends by itself gives up the leadership for a while, or ends the program with its code.
func TestActiveCommandEndsByItself(t *testing.T) { stalltest.Run(t, activeCommandEndsByItself) }

func activeCommandEndsByItself(t testing.TB) {
	p := newPlace(t)
	once := p.candidate("a", "exit 7", "--on-exit", "exit")
	if code := once.code(); code != 7 {
		t.Errorf("exit code %d, want 7: %s", code, once.stderr)
	}
	missing := p.start("elect", "job", "--on-exit", "exit", "--", "./not-there")
	if code := missing.code(); code != cli.ExitMissing {
		t.Errorf("exit code %d, want %d: %s", code, cli.ExitMissing, missing.stderr)
	}
	again := p.candidate("a", "echo life >>story; exit 3")
	eventually(t, "it has lived three times", func() bool { return strings.HasPrefix(p.story(), "life life life") }) // and again, later
	again.says("has ended with code 3; no candidate for 1s")
	again.says("no candidate for 2s")
	p.candidate("b", "echo >b; exec sleep 1000")
	p.content("b") // who rests leaves it to others
}

// A leader gives way to a candidate in a zone that is preferred, and no sooner than it has led for the time it is to.
func TestLeaderGivesWay(t *testing.T) { stalltest.Run(t, leaderGivesWay) }

func leaderGivesWay(t testing.TB) {
	p := newPlace(t)
	start := time.Now()
	p.candidate("a", tells("a"), "--zone", "us", "--prefer", "eu,us", "--fail-back", "100ms", "--min-hold", "3s")
	p.told("a")
	p.candidate("b", tells("b"), "--zone", "eu")
	p.told("a a-ends b")
	if took := time.Since(start); took < 3*time.Second {
		t.Errorf("it took %v: want at least 3 s", took)
	}
}
