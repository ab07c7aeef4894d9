package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// A value that is lost while CMD runs: CMD is dead before the validity of what was last written has ended, and the exit code says so;
// with --restart it is claimed again, under a higher token.
func TestLostValue(t *testing.T) { stalltest.Run(t, lostValue) }

func lostValue(t testing.TB) {
	p := newPlace(t)
	run := p.start("id", "assign", "machines", "--range", "7-7", "--as", "web1", "--ttl", "4s", "--",
		"sh", "-c", "echo $LEASEHOLD_ID >id; exec ticker ticks stubborn")
	p.ticked("ticks")
	if id := p.content("id"); id != "7" {
		t.Errorf("it has %s", id)
	}
	reader := p.reader()
	restore := p.cutOff()
	lease, _ := reader.record("identity/machines/7")
	session, written := reader.record(lease.Session)
	eventually(t, "the command is killed", func() bool { return strings.Contains(run.stderr.String(), "SIGKILL") })
	restore()
	if code := run.code(); code != cli.ExitLost {
		t.Errorf("exit code %d, want %d; standard error:\n%s", code, cli.ExitLost, run.stderr)
	}
	if end := written.Add(validity(session)); p.lastTick("ticks") >= end {
		t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
	}
}

// An operator ends a hold: with --restart the value is claimed again under a higher token. A signal ends CMD, and the value is free.
func TestValueIsClaimedAgain(t *testing.T) {
	p := newPlace(t)
	run := p.start("id", "assign", "machines", "--range", "7-7", "--as", "web1", "--ttl", "20s", "--restart", "--",
		"sh", "-c", `echo $LEASEHOLD_TOKEN >>tokens; echo >started; exec sleep 1000`)
	p.content("started")
	first := p.content("tokens")
	p.must("id", "release", "machines", "--as", "web1", "--token", first)
	eventually(t, "it runs again", func() bool { return strings.Count(p.read("tokens"), "\n") >= 2 })
	tokens := strings.Fields(p.read("tokens"))
	if tokens[1] <= tokens[0] {
		t.Errorf("tokens: %v", tokens)
	}
	run.signal(syscall.SIGTERM)
	if code := run.code(); code != cli.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit code %d; standard error:\n%s", code, run.stderr)
	}
	if rec, _ := p.reader().record("identity/machines/7"); rec.Owner != "" {
		t.Errorf("%+v", rec)
	}
}

// The program is killed: its value is free, and the same name gets it before that is up for others.
func TestKilledValue(t *testing.T) { stalltest.Run(t, killedValue) }

func killedValue(t testing.TB) {
	p := newPlace(t)
	run := p.start("id", "assign", "machines", "--range", "7-7", "--as", "web1", "--ttl", "2s", "--", "sh", "-c", "echo $$ >pid; exec sleep 1000")
	pid := p.pid("pid")
	run.signal(syscall.SIGKILL)
	run.code()
	eventually(t, "CMD is killed with it", func() bool { return !runs(pid) })
	p.must("id", "assign", "machines", "--as", "web1", "--ttl", "2s", "--", "true")
	p.must("id", "assign", "machines", "--as", "web2")
}
