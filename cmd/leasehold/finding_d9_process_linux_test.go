package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// SIGHUP, which ended the instance, has the file read again: what has changed is told, what is in force stays so, and a file that
// can't be read does no harm.
func TestFinding_D9_SIGHUPReadsTheFile(t *testing.T) { stalltest.Run(t, sighupReadsTheFile) }

func sighupReadsTheFile(t testing.TB) {
	p := newPods(t)
	prog := p.run("a", "--", "span", "span")
	if p.active() != "a" {
		t.Fatal("a is not active")
	}
	eventually(t, "its command runs", func() bool { return len(p.spans("span")) > 0 })
	was := "dynamoDB:\n  leaseName: prod\n  podIdentifier: a\n  waitTimeInSeconds: 1\n  failureThreshold: 3\n  region: region-of-a\n  store: file:" + p.path("leases.db") + "\n"
	for _, c := range []struct{ text, want string }{
		{strings.Replace(was, "Seconds: 1", "Seconds: 2", 1), "waitTimeInSeconds 1 → 2"},
		{"dynamoDB: [", "can't be read, and that of the start stays in force"},
		{was, "the configuration is that of the start"},
	} {
		p.put("a.yaml", c.text)
		prog.signal(syscall.SIGHUP)
		eventually(t, c.want, func() bool { return strings.Contains(prog.stderr.String(), c.want) })
	}
	// CMD, which doesn't catch SIGHUP, continues.
	last := func() (at clock.Instant) {
		for _, span := range p.spans("span") {
			at = max(at, span[1])
		}
		return at
	}
	told := clock.System().Now()
	eventually(t, "CMD works after that", func() bool { return last() > told.Add(100*time.Millisecond) })
	if code, _ := p.get("a", "/active"); code != 200 {
		t.Errorf("after that: %d\n%s", code, prog.stderr)
	}
	if n := len(p.spans("span")); n != 1 {
		t.Errorf("CMD ran in %d terms, want one", n)
	}
}
