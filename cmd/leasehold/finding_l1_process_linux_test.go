package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/internal/steady"
)

// A store that answers as late as 40 % of what CMD may count on doesn't end CMD, and the log says why it is in jeopardy meanwhile.
//
//	LEASEHOLD_SLOW_FOR=3m go test ./cmd/leasehold -run TestFinding_L1 -v
func TestFinding_L1_ASlowStoreEndsNoCommand(t *testing.T) {
	for name, start := range map[string]func(t testing.TB) (addr, url string){
		"etcd":  func(t testing.TB) (string, string) { return servers.Etcd(t).Addr, "etcd://%s" },
		"Redis": func(t testing.TB) (string, string) { return servers.Redis(t).Addr, "redis://%s" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, form := start(t)
			steady.Run(t, func(t testing.TB) { slowRun(t, addr, form) })
		})
	}
}

func slowRun(t testing.TB, addr, form string) {
	timing := supervise.Timing{TTL: 8 * time.Second}.WithDefaults()
	latency := (timing.Validity() - timing.Slack() - timing.KillAfter) * 40 / 100
	slow := 10 * time.Second
	if d, err := time.ParseDuration(os.Getenv("LEASEHOLD_SLOW_FOR")); err == nil {
		slow = d
	}
	network := servers.Proxy(t, addr)
	p := newPlace(t)
	run := p.start("run", "--store", fmt.Sprintf(form, network.Addr), "--ttl", timing.TTL.String(), "job", "--", "ticker", "ticks")
	p.ticked("ticks")
	goesOn := func(d time.Duration) {
		t.Helper()
		select {
		case <-run.ended:
			t.Fatalf("it has ended: %s", run.stderr)
		case <-time.After(d):
		}
	}
	goesOn(timing.TTL / 2) // a renewal has come meanwhile
	network.Delay(latency / 2)
	goesOn(slow)
	if !strings.Contains(run.stderr.String(), "no answer within") {
		t.Errorf("it doesn't say that the store is slow: %s", run.stderr)
	}
	t.Logf("%v of latency for %v at a TTL of %v: CMD runs on", latency, slow, timing.TTL)
	network.Heal()
	run.signal(syscall.SIGTERM)
	if code := run.code(); code == exitLost {
		t.Errorf("it was lost: %s", run.stderr)
	}
}
