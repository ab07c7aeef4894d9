package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// On a file, where the kernel proves that a process has ended, all who are killed in a line, and the holder, are passed at once and not
// at the next look at their sessions, which is due after a third of the TTL.
func TestFinding_K7_TheDeadInALineArePassedAtOnce(t *testing.T) {
	for name, flags := range map[string][]string{
		"fair mutex":              {"--fair"},
		"fair semaphore":          {"--slots", "1", "--fair"},
		"semaphore":               {"--slots", "1"},
		"writer behind a reader":  {"--shared"},
		"reader behind the whole": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 2 * time.Minute
			p := newPlace(t)
			start := func(script string, flags ...string) *program {
				return p.start(runArgsWith(append([]string{"--ttl", ttl.String()}, flags...), "job", "sh", "-c", script)...)
			}
			waits := func(flags []string, script string) *program {
				prog := start(script, flags...)
				eventually(t, "it waits", func() bool { return strings.Contains(prog.stderr.String(), "waiting for job: held by") })
				return prog
			}
			holder := start("echo >held; exec sleep 600", flags...)
			p.content("held")
			if name == "writer behind a reader" {
				flags = nil
			} else if name == "reader behind the whole" {
				flags = []string{"--shared"}
			}
			dead := []*program{waits(flags, "exec sleep 600"), waits(flags, "exec sleep 600"), holder}
			last := waits(flags, "echo >next")
			killed := clock.System().Now()
			for _, prog := range dead {
				prog.signal(syscall.SIGKILL)
			}
			if code := last.code(); code != 0 {
				t.Errorf("exit code %d: %s", code, last.stderr)
			}
			took := clock.System().Now().Sub(killed)
			t.Logf("passed after %v", took)
			if most := ttl / 10; took > most {
				t.Errorf("the last in line waited for %v after those before it were killed, want %v at most", took, most)
			}
		})
	}
}
