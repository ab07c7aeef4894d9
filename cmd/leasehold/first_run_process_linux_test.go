package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/store/open"
)

// firstCommand returns the README's first command.
func firstCommand(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("(?m)^go run .*$").FindString(string(text))
	if command == "" {
		t.Fatal("README.md has no line that begins with go run")
	}
	return command
}

// The README's first command, typed in two terminals: one runs at a time, and the second takes over when the first is killed. The
// build that it makes is the only one with its tags.
func TestTheFirstRunOfTheREADME(t *testing.T) {
	p := newPlace(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	typed := func(store string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", strings.Replace(firstCommand(t), "sleep 5", "sleep ${NAP:-0}", 1))
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "LEASEHOLD_STORE="+store)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run passes on no SIGKILL
		return cmd
	}
	out, err := typed("file:" + p.path("leases.db")).CombinedOutput()
	if turn := regexp.MustCompile(`(?m)^it is my turn, token [1-9][0-9]*$`); err != nil || !turn.Match(out) {
		t.Fatalf("%v\n%s", err, out)
	}

	first, second := typed("file:"+p.path("leases.db")), typed("file:"+p.path("leases.db"))
	first.Env = append(first.Env, "NAP=1000")
	said := &lockedBuffer{}
	first.Stdout = said
	one := p.launch(first)
	t.Cleanup(func() { _ = syscall.Kill(-one.cmd.Process.Pid, syscall.SIGKILL) })
	eventually(t, "the first has its turn", func() bool { return strings.Contains(said.String(), "my turn") })
	two := p.launch(second)
	two.says("waiting for nightly-report: held by")
	if err := syscall.Kill(-one.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := two.code(); code != 0 {
		t.Errorf("the second ended with %d\n%s", code, two.stderr)
	}
}

// What that build leaves out is answered with the fix, and the run doesn't begin.
func TestTheFirstRunNamesWhatItLacks(t *testing.T) {
	p := newPlace(t)
	exe := p.path("leasehold")
	tags := regexp.MustCompile(`-tags (\S+)`).FindStringSubmatch(firstCommand(t))
	if tags == nil {
		t.Fatal("the README's first command has no tags")
	}
	if out, err := exec.Command("go", "build", "-tags", tags[1], "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe, "version", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var has cli.Build
	if err := json.Unmarshal(out, &has); err != nil {
		t.Fatal(err)
	}
	lacks := 0
	for _, s := range open.Schemes() {
		if slices.Contains(has.Stores, s.Name) {
			continue
		}
		lacks++
		cmd := p.command("run", "--store", s.Name+"://127.0.0.1/x", "nightly", "--", "touch", "ran")
		cmd.Path = exe
		out, err := cmd.CombinedOutput()
		fixed := strings.Contains(string(out), "install the full program, leasehold") || strings.Contains(string(out), "build it without the tag")
		if cmd.ProcessState.ExitCode() != cli.ExitUsage || !fixed {
			t.Errorf("of %s it says this, and ends with %v:\n%s", s.Name, err, out)
		}
		if _, err := os.Stat(p.path("ran")); err == nil {
			t.Errorf("on %s it ran", s.Name)
		}
	}
	if lacks < 8 || len(has.Stores) < 3 {
		t.Errorf("it has %v, and lacks %d others: want the stores of this machine alone", has.Stores, lacks)
	}
}
