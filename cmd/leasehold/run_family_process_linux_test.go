package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// What a shell started before it became `leasehold run` isn't the command's, and goes on after it.
func TestRunLeavesWhatWasThereBefore(t *testing.T) {
	p := newPlace(t)
	run := p.command("run", "job", "--", "true")
	cmd := exec.Command("/bin/sh", append([]string{"-c", `sleep 1000 >/dev/null 2>&1 & echo $! >helper; exec "$@"`, "sh"}, run.Args...)...)
	cmd.Args[4] = run.Path
	cmd.Env, cmd.Dir = run.Env, p.dir
	x := p.launch(cmd)
	if code := x.code(); code != 0 {
		t.Fatalf("exit code %d: %s", code, x.stderr)
	}
	helper := p.pid("helper")
	if !runs(helper) {
		t.Error("it was ended with the command")
	}
	if err := syscall.Kill(helper, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// The exit code of --eligible-if is its own, while the active command leaves things behind to be cleaned up.
func TestElectEligibleIfBesideOrphans(t *testing.T) {
	p := newPlace(t)
	x := p.candidate("a", "while :; do (sleep 0.001 &); sleep 0.005; done", "--eligible-if", "echo asked >>asked")
	eventually(t, "it is asked", func() bool { return strings.Count(p.content("asked"), "asked") >= 10 })
	x.signal(syscall.SIGTERM)
	if code := x.code(); code != 128+int(syscall.SIGTERM) || strings.Contains(x.stderr.String(), "no child processes") {
		t.Errorf("exit code %d: %s", code, x.stderr)
	}
}
