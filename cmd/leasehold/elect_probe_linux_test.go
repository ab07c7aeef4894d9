package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// touch makes a file that commands look for, remove takes it away.
func (p place) touch(name string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) remove(name string) {
	p.t.Helper()
	if err := os.Remove(p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// A candidate that is not eligible doesn't lead, and a leader that isn't any more steps down for one that is. A command that hangs says
// no, and is ended with all that it has started.
func TestElectEligibleIf(t *testing.T) { stalltest.Run(t, electEligibleIf) }

func electEligibleIf(t testing.TB) {
	p := newPlace(t)
	p.touch("a-may")
	a := p.candidate("a", tells("a"), "--eligible-if", "test -e a-may")
	p.told("a")
	b := p.candidate("b", tells("b"), "--eligible-if", "test ! -e b-hangs || sleep 100")
	c := p.candidate("c", tells("c"), "--eligible-if", "sleep 100 & echo $! >hung; wait")
	for _, x := range []*program{b, c} {
		eventually(t, "it stands", func() bool { return strings.Contains(x.stderr.String(), "ligible") })
	}
	p.remove("a-may")
	p.told("a a-ends b")
	a.says("not eligible: --eligible-if: exit status 1")
	a.says("stepping down")
	p.touch("a-may")
	p.touch("b-hangs")
	p.told("a a-ends b b-ends a")
	b.says("not eligible: --eligible-if: it has not ended in time")
	hung := p.pid("hung")
	eventually(t, "nothing is left of a command that hung", func() bool { return !runs(hung) })
	for _, x := range []*program{a, b, c} {
		x.signal(syscall.SIGTERM)
		if code := x.code(); code != 128+int(syscall.SIGTERM) {
			t.Errorf("exit code %d: %s", code, x.stderr)
		}
	}
}

// A leader gives way to a candidate that is preferred when it is idle, and not before.
func TestElectFailBackWhenIdle(t *testing.T) { stalltest.Run(t, electFailBackWhenIdle) }

func electFailBackWhenIdle(t testing.TB) {
	p := newPlace(t)
	a := p.candidate("a", tells("a"), "--fail-back", "when-idle", "--idle-if", "echo asked >>asked; test -e idle")
	p.told("a")
	b := p.candidate("b", tells("b"), "--priority", "1")
	eventually(t, "a is asked", func() bool {
		asked, _ := os.ReadFile(p.path("asked"))
		return strings.Count(string(asked), "asked") > 2
	})
	p.told("a")
	p.touch("idle")
	p.told("a a-ends b")
	for _, x := range []*program{a, b} {
		x.signal(syscall.SIGTERM)
		x.code()
	}
}
