package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store/memory"
)

// Everybody is told how to log in, by a server that refuses everything else to strangers; the page may ask the issuers' token endpoints, and
// waits for an issuer only behind its answer.
func TestLogins(t *testing.T) {
	st := memory.New(memory.Options{})
	waits := 0
	srv, err := New(st, Options{
		Authenticate: func(*http.Request) (Caller, error) { return nil, errors.New("who is there?") },
		Logins: func(_ context.Context, wait bool) []Login {
			if wait {
				waits++
			}
			return []Login{
				{Issuer: "https://id", ClientID: "page", Scopes: "openid", Token: "id_token", AuthorizationEndpoint: "https://id/auth", TokenEndpoint: "https://tokens.id:8443/token"},
				{Issuer: "https://down", ClientID: "page", Scopes: "openid", Token: "access_token", Resource: "https://leases", Problem: "it is down"},
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close(); _ = st.Close() })
	get := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		return w
	}
	const want = `{"logins":[{"issuer":"https://id","client_id":"page","scopes":"openid","token":"id_token","authorization_endpoint":"https://id/auth","token_endpoint":"https://tokens.id:8443/token"},` +
		`{"issuer":"https://down","client_id":"page","scopes":"openid","resource":"https://leases","token":"access_token","problem":"it is down"}]}`
	if w := get(http.MethodGet, "/v1/login"); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for method, path := range map[string]string{http.MethodGet: "/v1/whoami", http.MethodPost: "/v1/leases/x"} {
		if w := get(method, path); w.Code != http.StatusUnauthorized {
			t.Errorf("%s %s: %d", method, path, w.Code)
		}
	}
	waits = 0
	if csp := get(http.MethodGet, "/").Header().Get("Content-Security-Policy"); !strings.HasSuffix(csp, "; connect-src 'self' https://tokens.id:8443") || waits != 0 {
		t.Errorf("%s, %d waits", csp, waits)
	}
	if get(http.MethodGet, "/?code=x&state=y"); waits != 1 {
		t.Errorf("behind the issuer's answer: %d waits", waits)
	}
}

// A server without a login says so.
func TestNoLogins(t *testing.T) {
	st := memory.New(memory.Options{})
	srv, err := New(st, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close(); _ = st.Close() })
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/login", nil))
	if w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != `{"logins":[]}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
