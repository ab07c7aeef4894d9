package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// The store of a standby hangs, from before its start or while it is active: each of its endpoints answers at once, by what is known, and
// says within the TTL that the instance is passive.
func TestFinding_L10_AStandbyAnswersWhileItsStoreHangs(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("early=%t", early), func(t *testing.T) {
			stalltest.Run(t, func(t testing.TB) { standbyOnAStoreThatHangs(t, early) })
		})
	}
}

func standbyOnAStoreThatHangs(t testing.TB, early bool) {
	srv := servers.Redis(t)
	p := newPods(t)
	conf := p.put("east.yaml", fmt.Sprintf(
		"dynamoDB:\n  leaseName: prod\n  podIdentifier: east\n  waitTimeInSeconds: 1\n  failureThreshold: 3\n  region: east\n  store: %s\n", srv.URL))
	if early {
		srv.Pause()
	}
	p.progs["east"] = p.start("standby", "--config", conf, "--listen", "127.0.0.1:0")
	if !early {
		p.active()
		srv.Pause()
	}
	const bound = time.Second
	var last admiral.Report
	for begun := time.Now(); time.Since(begun) < standbyTTL+2*time.Second; time.Sleep(100 * time.Millisecond) {
		for _, path := range []string{"/health/ready", "/health/ready?checkifreadonly=true", "/active", "/standby", "/state", "/metrics"} {
			asked := time.Now()
			code, report := p.get("east", path)
			if took := time.Since(asked); took > bound {
				stalltest.Over(t, took-bound, "%s: answered after %v with %d, want %v at most", path, took, code, bound)
			}
			switch {
			case path == "/health/ready" && code != http.StatusOK:
				t.Errorf("%s: %d: a probe restarts an instance whose store hangs", path, code)
			case path == "/state":
				last = report
			}
		}
	}
	if !last.ReadOnly || last.Reason == "" || !early && last.LastError == "" {
		t.Errorf("a TTL after the store began to hang it says %+v", last)
	}
	srv.Resume()
	p.active()
}
