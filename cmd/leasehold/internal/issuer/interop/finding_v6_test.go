package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/issuer"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/policy"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store/memory"
)

// site is a lock server with a policy.
type site struct {
	*httptest.Server
	policy *policy.Policy

	mu     sync.Mutex
	events []server.Event
	later  time.Duration // by how much its clock is ahead
}

func newSite(t *testing.T, text string) *site {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s := &site{policy: p}
	p.Wall = func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Now().Add(s.later)
	}
	st := memory.NewDB(memory.Options{}).Open()
	srv, err := server.New(st, server.Options{Authenticate: p.Authenticate, Logins: p.Logins, OnEvent: func(e server.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(srv)
	t.Cleanup(func() { s.Close(); _ = srv.Close(); _ = st.Close() })
	return s
}

func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later += d
}

// takes has a caller acquire a name that nobody holds, of that prefix, and wants that answer, and the same told of it.
func (s *site) takes(t *testing.T, what, token, prefix string, status int, caller, outcome string) {
	t.Helper()
	s.mu.Lock()
	name := fmt.Sprintf("%s/%d", prefix, len(s.events))
	s.mu.Unlock()
	req, err := http.NewRequest(http.MethodPost, s.URL+"/v1/leases/"+url.PathEscape(name), strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Errorf("%s: %d %s, %v; want %d", what, resp.StatusCode, text, err, status)
	}
	if status == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s: it doesn't say when to come again", what)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.events[len(s.events)-1]
	if e.Caller != caller || e.Outcome != outcome || e.Op != "acquire" || e.Name != name {
		t.Errorf("%s: told of %+v, want %s, %s", what, e, caller, outcome)
	}
	said, err := json.Marshal(s.events)
	if err != nil || strings.Contains(string(said), token) || strings.Contains(string(text), token) {
		t.Errorf("%s: the token is in it", what)
	}
}

// A caller is named by a token of an issuer, and may do what the policy says of its name and its roles; keys rotate, and the issuer may be down.
func TestFinding_V6_ARealIssuerNamesCallers(t *testing.T) {
	p := newProvider(t)
	text := fmt.Sprintf(`
issuers:
  - {issuer: %q, audience: leasehold, roles_claim: groups, prefix: "corp:"}
callers:
  - {name: builders, subjects: ["corp:sid*"], allow: [{actions: [acquire], names: ["ci/*"]}]}
  - {name: operators, roles: ["corp:sre"], allow: [{actions: ["*"], names: ["ops/*"]}]}
  - {name: others, subjects: ["corp:sid2"], roles: ["corp:cfo"], allow: [{actions: ["*"], names: ["*"]}]}
`, p.URL)
	s := newSite(t, text)
	const who = "corp:sid1"
	first := p.token(t)
	s.takes(t, "by its name", first, "ci", 201, who, "ok")
	s.takes(t, "by its role", first, "ops", 201, who, "ok")
	s.takes(t, "what nobody allows", first, "prod", 403, who, "forbidden")
	p.set(func() { p.groups = nil })
	s.takes(t, "without the role", p.token(t), "ops", 403, who, "forbidden")

	p.set(func() { p.audience = "grafana" })
	s.takes(t, "for another audience", p.token(t), "ci", 401, "", "unauthenticated")
	p.set(func() { p.audience, p.lifetime = "leasehold", -time.Minute })
	s.takes(t, "expired", p.token(t), "ci", 401, "", "unauthenticated")
	p.set(func() { p.lifetime = time.Hour })
	other := newProvider(t)
	s.takes(t, "from another issuer", other.token(t), "ci", 401, "", "unauthenticated")
	if n := p.asked(); n != 1 {
		t.Errorf("the issuer was asked for its keys %d times", n)
	}

	p.rotate(t, "2026-b")
	second := p.token(t)
	s.takes(t, "by a new key, at once", second, "ci", 503, "", "auth_unavailable")
	s.pass(issuer.FetchEvery)
	s.takes(t, "by a new key", second, "ci", 201, who, "ok")
	s.takes(t, "by the old one", first, "ci", 201, who, "ok")
	p.withdraw()
	p.rotate(t, "2026-c")
	s.pass(issuer.FetchEvery)
	s.takes(t, "by the third", p.token(t), "ci", 201, who, "ok")
	s.pass(issuer.FetchEvery)
	s.takes(t, "by the first, which is gone", first, "ci", 401, "", "unauthenticated")

	p.Server.Close()
	s.pass(issuer.RefreshAfter)
	s.takes(t, "the issuer is down", second, "ci", 201, who, "ok")
	if err := s.policy.Reload(); err != nil {
		t.Fatal(err)
	}
	s.takes(t, "the policy is read again meanwhile", second, "ci", 201, who, "ok")
	newSite(t, text).takes(t, "at a server that started meanwhile", second, "ci", 503, "", "auth_unavailable")
	found := s.policy.Check(t.Context())
	if !slices.ContainsFunc(found, func(f policy.Trusted) bool { return f.What == "issuer "+p.URL && f.Err != nil }) {
		t.Errorf("%+v", found)
	}
}
