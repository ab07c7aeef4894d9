package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/drill"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// drilled reads the report in a folder.
func (p *pods) drilled(dir string) (r drill.Report) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.read(dir+"/report.json")), &r); err != nil {
		p.t.Fatal(err)
	}
	for _, file := range []string{"report.md", "timeline.svg"} {
		if len(p.read(dir+"/"+file)) == 0 {
			p.t.Errorf("%s is empty", file)
		}
	}
	return r
}

// TestStandbyDrill: a pair that runs is switched over, and its active instance killed and started
// again by the operator's commands. Each side is probed by whether its CMD runs.
func TestStandbyDrill(t *testing.T) { t.Parallel(); stalltest.Run(t, standbyDrill) }

func standbyDrill(t testing.TB) {
	p := newPods(t)
	for _, pod := range []string{"a", "b"} {
		prog := p.run(pod, "--", "sh", "-c", "echo $$ >work-"+pod+"; exec sleep 1000")
		p.put("standby-"+pod, fmt.Sprintf("%d\n", prog.cmd.Process.Pid))
		p.active() // a first
	}
	drilling := p.start("standby", "drill", "--config", "a.yaml", "--force", "--every", "50ms", "--report", "report",
		"--side", "a=kill -0 $(cat work-a)", "--side", "b=kill -0 $(cat work-b)",
		"--kill-active", "kill -9 $(cat standby-$LEASEHOLD_DRILL_POD)",
		"--restart", "leasehold standby --config $LEASEHOLD_DRILL_POD.yaml --listen off -- sh -c 'echo $$ >work-'$LEASEHOLD_DRILL_POD'; exec sleep 1000' >/dev/null 2>&1 & echo $! >standby-$LEASEHOLD_DRILL_POD")
	if code := drilling.code(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, drilling.stderr)
	}
	r := p.drilled("report")
	if !r.OK || r.Wrong != 0 || r.Accepted < 20 || len(r.Steps) != 3 || r.Active.Region != "region-of-a" {
		t.Errorf("%s: %+v", r.Verdict(), r)
	}
	for _, s := range r.Summary {
		if s.Step == drill.Kill && (s.RTOMax < 1 || s.RTOMax > (standbyTTL+standbyWait).Seconds()+2) || s.Step != drill.Kill && s.RTOMax > standbyTTL.Seconds() {
			t.Errorf("%+v", s)
		}
	}
	if rec, _ := p.reader().record("prod"); !strings.HasPrefix(rec.Owner, "a/") {
		t.Errorf("%s is active", rec.Owner)
	}
}

// TestStandbyRehearsal: the faults are made on two instances of the command's own. An interrupt in
// the middle of one leaves no process and no row.
func TestStandbyRehearsal(t *testing.T) { t.Parallel(); stalltest.Run(t, standbyRehearsal) }

func standbyRehearsal(t testing.TB) {
	p := newPods(t)
	p.conf("a")
	rehearse := func(dir, steps string) *program {
		return p.start("standby", "drill", "--config", "a.yaml", "--rehearse", "--report", dir, "--steps", steps)
	}
	whole := rehearse("whole", "switchover,back,kill,partition,store")
	cut := rehearse("cut", "partition,kill")
	eventually(t, "the partition is there", func() bool { return strings.Contains(cut.stderr.String(), "partition: ") })
	children := childrenOf(t, cut.cmd.Process.Pid)
	cut.signal(syscall.SIGINT)
	if code := cut.code(); code != cli.ExitSignal+int(syscall.SIGINT) {
		t.Errorf("exit code %d\n%s", code, cut.stderr)
	}
	if r := p.drilled("cut"); r.OK || r.Interrupt == "" || len(r.NotUndone) > 0 || r.Steps[1].Skipped == "" {
		t.Errorf("%s: %+v", r.Verdict(), r)
	}
	for _, pid := range children {
		if runs(pid) {
			t.Errorf("the instance %d still runs", pid)
		}
	}
	if len(children) != 2 {
		t.Errorf("%d instances", len(children))
	}
	if code := whole.code(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, whole.stderr)
	}
	if r := p.drilled("whole"); !r.OK || r.Wrong != 0 || r.Accepted < 100 || len(r.Summary) != 5 || !r.Rehearsal {
		t.Errorf("%s: %+v", r.Verdict(), r)
	}
	for rec, err := range p.reader().st.List(t.Context(), "") {
		t.Errorf("a row is left: %+v, %v", rec, err)
	}
}

// TestRehearsalDiesWithUs: instances of a rehearsal that is killed end by themselves.
func TestRehearsalDiesWithUs(t *testing.T) {
	p := newPods(t)
	p.conf("a")
	prog := p.start("standby", "drill", "--config", "a.yaml", "--rehearse", "--report", "report", "--steps", "store")
	eventually(t, "the instances run", func() bool { return strings.Contains(prog.stderr.String(), "two instances run") })
	children := childrenOf(t, prog.cmd.Process.Pid)
	prog.signal(syscall.SIGKILL)
	<-prog.ended
	for _, pid := range children {
		eventually(t, "it is gone", func() bool { return !runs(pid) })
	}
}
