package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/serve"
)

// served is a server that runs, and its URL.
type served struct {
	place
	*program
	url string
}

func (p place) serve(args ...string) *served { p.t.Helper(); return p.serveAt("127.0.0.1:0", args...) }

func (p place) serveAt(addr string, args ...string) *served {
	p.t.Helper()
	s := &served{place: p, program: p.start(append([]string{"serve", "--listen", addr}, args...)...)}
	eventually(p.t, "it listens", func() bool {
		_, url, ok := strings.Cut(s.stderr.String(), " on http://")
		s.url = "http://" + strings.TrimSpace(strings.SplitN(url, "\n", 2)[0])
		return ok && strings.Contains(url, "\n")
	})
	return s
}

// ask sends a request with a token, and returns the status and the body.
func (s *served) ask(method, path, body, token string) (int, string) {
	s.place.t.Helper()
	req, err := http.NewRequestWithContext(s.place.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.place.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return s.send(req)
}

// send sends a request, and returns the status and the body.
func (s *served) send(req *http.Request) (int, string) {
	s.place.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.place.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.place.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A server that is killed while it serves has lost nothing: the next one knows who holds what.
func TestServeIsKilled(t *testing.T) {
	p := newPlace(t)
	first := p.serve()
	status, text := first.ask(http.MethodPost, "/v1/leases/job", `{"holder": "me", "ttl": 60}`, "")
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	var g struct{ Sequencer string }
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGKILL)
	first.code()
	second := p.serve()
	if status, text := second.ask(http.MethodPost, "/v1/leases/job", `{}`, ""); status != http.StatusConflict || !strings.Contains(text, "me/") {
		t.Errorf("%d %s", status, text)
	}
	second.must("run", "--store", second.url, "other", "--", "true")
	waits := make(chan int)
	go func() {
		status, _ := second.ask(http.MethodPost, "/v1/leases/job", `{"wait": 60}`, "")
		waits <- status
	}()
	eventually(t, "one waits", func() bool {
		_, text := second.ask(http.MethodGet, "/v1/leases/job/waiters", "", "")
		return strings.Contains(text, "http/")
	})
	second.signal(syscall.SIGTERM)
	if status := <-waits; status != http.StatusServiceUnavailable {
		t.Errorf("who waited was told %d", status)
	}
	if code := second.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
}

func sha256sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestServePolicy(t *testing.T) {
	p := newPlace(t)
	policy := func(token string) {
		text := fmt.Sprintf("callers:\n- name: ci\n  token_sha256: [%s]\n  allow: [{actions: [acquire], names: ['ci/*']}]\n", sha256sum(token))
		if err := os.WriteFile(p.path("policy.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy("old")
	s := p.serve("--policy", "policy.yaml", "--audit", "audit.jsonl")
	for _, c := range []struct {
		name, token string
		status      int
	}{{"ci%2Fa", "old", 201}, {"ci%2Fb", "", 401}, {"ci%2Fb", "new", 401}, {"cd", "old", 403}} {
		if status, text := s.ask(http.MethodPost, "/v1/leases/"+c.name, "", c.token); status != c.status {
			t.Errorf("%+v: %d %s", c, status, text)
		}
	}
	if status, _ := s.ask(http.MethodPost, "/locks/ci", `{"title": 1, "wait": 0, "lifetime": 5}`, "old"); status != http.StatusForbidden {
		t.Errorf("RDLM: %d", status)
	}
	p.write("policy.yaml") // empty: an error, and the old one stays
	s.signal(syscall.SIGHUP)
	eventually(t, "it says so", func() bool { return strings.Contains(s.stderr.String(), "stays in force") })
	if status, _ := s.ask(http.MethodPost, "/v1/leases/ci%2Fc", "", "old"); status != http.StatusCreated {
		t.Errorf("after an error: %d", status)
	}
	policy("new")
	s.signal(syscall.SIGHUP)
	eventually(t, "it is read", func() bool { return strings.Contains(s.stderr.String(), "was read again") })
	if status, _ := s.ask(http.MethodPost, "/v1/leases/ci%2Fd", "", "old"); status != http.StatusUnauthorized {
		t.Errorf("with the old token: %d", status)
	}
	var outcomes []string
	for line := range strings.Lines(p.read("audit.jsonl")) {
		var l serve.AuditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Op != "acquire" && l.Op != "rdlm" || time.Since(l.Time) > time.Minute {
			t.Errorf("%s: %v", line, err)
		}
		outcomes = append(outcomes, l.Caller+" "+l.Name+" "+l.Outcome)
	}
	want := "ci ci/a ok, ci/b unauthenticated, ci/b unauthenticated,ci cd forbidden,ci ci forbidden,ci ci/c ok, ci/d unauthenticated"
	if got := strings.Join(outcomes, ","); got != want {
		t.Errorf("audited %q, want %q", got, want)
	}
}
