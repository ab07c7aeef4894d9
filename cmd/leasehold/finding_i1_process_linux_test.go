package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// minted is an id that a minter has made, and when.
type minted struct {
	at clock.Instant
	id flake.ID
}

// minted returns the whole lines that a minter has written.
func (p place) minted(name string) (all []minted) {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for _, line := range lines[:len(lines)-1] {
		var m minted
		if _, err := fmt.Sscan(line, &m.at, &m.id); err != nil {
			p.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// A process that makes ids under a name is killed (SIGKILL), whether it claims its value itself or runs under `id assign`: the next one of that
// name makes its first id within the TTL and a second, and every one later than those before.
func TestFinding_I1_FirstIDAfterAKill(t *testing.T) {
	const ttl = 4 * time.Second
	for name, start := range map[string]func(p place, into string) *program{
		"library": func(p place, into string) *program {
			cmd := exec.Command("minter", p.path(into), p.path("leases.db"), "web1", ttl.String())
			cmd.Dir = p.dir
			return p.launch(cmd)
		},
		"id assign": func(p place, into string) *program {
			return p.start("id", "assign", "machines", "--range", "0-9", "--as", "web1", "--ttl", ttl.String(), "--kill-after", "100ms", "--", "minter", p.path(into))
		},
	} {
		t.Run(name, func(t *testing.T) {
			stalltest.Run(t, func(t testing.TB) {
				p := newPlace(t)
				run := start(p, "first")
				eventually(t, "it has raised its ceiling", func() bool {
					all := p.minted("first")
					return len(all) > 0 && all[len(all)-1].at.Sub(all[0].at) > ttl
				})
				run.signal(syscall.SIGKILL)
				killed := clock.System().Now()
				run.code()
				start(p, "second")
				eventually(t, "the next one makes ids", func() bool { return len(p.minted("second")) > 100 })
				first, second := p.minted("first"), p.minted("second")
				took := second[0].at.Sub(killed)
				t.Logf("the first id after %v; the TTL is %v", took, ttl)
				if took >= ttl+time.Second {
					stalltest.Over(t, took-ttl-time.Second, "the first id after %v, the TTL is %v", took, ttl)
				}
				all := append(first, second...)
				for i, m := range all[1:] {
					if m.id <= all[i].id || m.id>>12&1023 != all[0].id>>12&1023 {
						t.Fatalf("id %d is followed by %d", all[i].id, m.id)
					}
				}
			})
		})
	}
}

// A CMD that says what it has used is followed at once by the next one.
func TestFinding_I1_ACommandSaysWhatItUsed(t *testing.T) {
	stalltest.Run(t, func(t testing.TB) {
		p := newPlace(t)
		start := func(into string) *program {
			return p.start("id", "assign", "machines", "--range", "0-9", "--as", "web1", "--ttl", "20s", "--", "minter", p.path(into))
		}
		run := start("first")
		eventually(t, "it makes ids", func() bool { return len(p.minted("first")) > 100 })
		run.signal(syscall.SIGTERM)
		if code := run.code(); code != 0 {
			t.Fatalf("exit code %d; standard error:\n%s", code, run.stderr)
		}
		ended := clock.System().Now()
		start("second")
		eventually(t, "the next one makes ids", func() bool { return len(p.minted("second")) > 100 })
		first, second := p.minted("first"), p.minted("second")
		if took := second[0].at.Sub(ended); took >= 3*time.Second {
			stalltest.Over(t, took-3*time.Second, "the first id after %v", took)
		}
		if last := first[len(first)-1].id; second[0].id <= last {
			t.Errorf("id %d is followed by %d", last, second[0].id)
		}
	})
}
