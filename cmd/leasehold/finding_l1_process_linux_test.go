package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// A store that answers as late as 40 % of what CMD may count on doesn't end CMD, and the log says why it is in jeopardy meanwhile. All
// engines are slow at once, whatever -parallel says: they do nothing but wait.
//
//	LEASEHOLD_SLOW_FOR=3m go test ./cmd/leasehold -run TestFinding_L1 -v
func TestFinding_L1_ASlowStoreEndsNoCommand(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for engine, start := range realStores {
		if engine == "file" || engine == "server" { // no network; and an engine behind it
			continue
		}
		all.Go(func() {
			t.Run(engine, func(t *testing.T) {
				url, env := start(t)
				stalltest.Run(t, func(t testing.TB) { slowRun(t, url, env) })
			})
		})
	}
}

var localAddr = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

// behindProxy returns the store's URL and environment with a proxy in front of its server.
func behindProxy(t testing.TB, p place, url string, env []string) (*servers.Network, []string) {
	t.Helper()
	all := strings.Join(append([]string{"LEASEHOLD_STORE=" + url}, env...), "\n")
	var kubeconfig []byte
	_, file, kube := strings.Cut(url, "kubeconfig=")
	if kube {
		var err error
		if kubeconfig, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		all = strings.ReplaceAll(all, file, p.path("kubeconfig"))
	}
	addr := localAddr.FindString(all + string(kubeconfig))
	network := servers.Proxy(t, addr)
	if kube {
		text := strings.ReplaceAll(string(kubeconfig), addr, network.Addr)
		if err := os.WriteFile(p.path("kubeconfig"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return network, strings.Split(strings.ReplaceAll(all, addr, network.Addr), "\n")
}

func slowRun(t testing.TB, url string, env []string) {
	timing := supervise.Timing{TTL: 10 * time.Second}.WithDefaults()
	latency := (timing.Validity() - timing.Slack() - timing.KillAfter) * 40 / 100
	slow := 24 * time.Second
	if d, err := time.ParseDuration(os.Getenv("LEASEHOLD_SLOW_FOR")); err == nil {
		slow = d
	}
	p := newPlace(t)
	network, env := behindProxy(t, p, url, env)
	cmd := p.command("run", "--ttl", timing.TTL.String(), filepath.Base(p.dir), "--", "ticker", "ticks")
	cmd.Env = append(cmd.Env, env...)
	run := p.launch(cmd)
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
	run.says("no answer within")
	t.Logf("%v of latency for %v at a TTL of %v: CMD runs on", latency, slow, timing.TTL)
	network.Heal()
	run.signal(syscall.SIGTERM)
	if code := run.code(); code == cli.ExitLost {
		t.Errorf("it was lost: %s", run.stderr)
	}
}
