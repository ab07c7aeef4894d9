package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// The real store is stopped under a server: every request is answered within its bound, /healthz at once, and /readyz says why in words. When
// the store goes on, so does the server.
func TestFinding_L10_StoresThatAreStopped(t *testing.T) {
	for name, start := range map[string]func(testing.TB) (*servers.Server, string){
		"PostgreSQL": func(t testing.TB) (*servers.Server, string) {
			srv := postgresWithSchema(t)
			return srv, srv.URL
		},
		"etcd":  func(t testing.TB) (*servers.Server, string) { srv := servers.Etcd(t); return srv, "etcd://" + srv.Addr },
		"Redis": func(t testing.TB) (*servers.Server, string) { srv := servers.Redis(t); return srv, srv.URL },
	} {
		t.Run(name, func(t *testing.T) {
			stalltest.Run(t, func(t testing.TB) {
				srv, url := start(t)
				stoppedStore(t, newPlace(t).serve("--store", url, "--store-timeout", "2s"), srv)
			})
		})
	}
}

// boundOfTest is that of each request, and what the machine may add.
const boundOfTest, slackOfTest = 2 * time.Second, 500 * time.Millisecond

func stoppedStore(t testing.TB, s *served, srv *servers.Server) {
	t.Helper()
	var g api.Grant
	status, text := s.ask(http.MethodPost, "/v1/leases/held", `{"ttl": 600}`, "")
	if err := json.Unmarshal([]byte(text), &g); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	srv.Pause()
	var all sync.WaitGroup
	for _, q := range []struct{ method, path, body string }{
		{"POST", "/v1/leases/free", ``}, {"PUT", "/v1/leases/held", ``}, {"PUT", "/v1/leases/held", ``}, {"DELETE", "/v1/leases/held", ``},
		{"GET", "/v1/leases/held", ``}, {"GET", "/v1/leases/held/history", ``}, {"GET", "/v1/leases", ``},
		{"POST", "/v1/leases/held/break", `{"token": ` + g.Token.String() + `}`}, {"POST", "/v1/leases/held/handoff", `{"any": true}`},
		{"POST", "/v1/leases/held/pause", `{"reason": "x"}`}, {"POST", "/v1/leases/held/resume", ``}, {"POST", "/v1/sessions", ``},
		{"POST", "/v1/identities/pool", `{"range": "1-9"}`}, {"GET", "/v1/identities/pool", ``}, {"GET", "/v1/ids/twitter", ``},
		{"POST", "/v1/verify", `{"sequencer": "` + g.Sequencer + `"}`}, {"GET", "/v1/records", ``}, {"GET", "/v1/records/held", ``},
		{"POST", "/locks/lock", `{"title": "x", "wait": 0, "lifetime": 60}`}, {"GET", "/readyz", ``},
	} {
		all.Go(func() {
			begun := time.Now()
			status, text, err := s.asks(q.method, q.path, q.body, "Leasehold-Sequencer", g.Sequencer, api.HeaderSecret, g.Secret)
			if took := time.Since(begun); took > boundOfTest+slackOfTest {
				stalltest.Over(t, took-boundOfTest-slackOfTest, "%s %s: answered after %v with %d", q.method, q.path, took, status)
			}
			if err != nil || status != http.StatusServiceUnavailable && status != http.StatusGatewayTimeout {
				t.Errorf("%s %s: %d %s %v", q.method, q.path, status, text, err)
			}
			if strings.Contains(text, "rpc error") || strings.Contains(text, "context deadline") && status == http.StatusServiceUnavailable {
				t.Errorf("%s %s says %s", q.method, q.path, text)
			}
		})
	}
	quickest := time.Hour
	for range 20 {
		begun := time.Now()
		status, text, err := s.asks(http.MethodGet, "/healthz", "")
		if err != nil || status != http.StatusOK {
			t.Errorf("/healthz: %d %s %v", status, text, err)
		}
		quickest = min(quickest, time.Since(begun))
	}
	if quickest > 10*time.Millisecond {
		stalltest.Over(t, quickest-10*time.Millisecond, "/healthz is answered after %v at the soonest", quickest)
	}
	all.Wait()
	srv.Resume()
	eventually(t, "it serves again", func() bool {
		status, _, err := s.asks(http.MethodPost, "/v1/leases/after", "")
		return err == nil && status == http.StatusCreated
	})
}

// asks sends a request, in any goroutine.
func (s *served) asks(method, path, body string, header ...string) (int, string, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
