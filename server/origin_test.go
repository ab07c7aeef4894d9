package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// A page of another site can't have a visitor's browser change anything, by either protocol; the server's own page can, and so can
// whoever is no browser.
func TestForeignPages(t *testing.T) {
	s := newSite(t, server.Options{RDLM: &rdlm.Options{}})
	for _, c := range []struct {
		method, path, body string
		header             []string
		ok                 bool
	}{
		{"POST", "/v1/leases/a", `{}`, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example", "Content-Type", "text/plain"}, false},
		{"POST", "/v1/leases/a", `{}`, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://other.localhost"}, false},
		{"POST", "/v1/leases/a", `{}`, []string{"Origin", "https://evil.example"}, false},
		{"POST", "/v1/leases/a", `{}`, []string{"Origin", "null"}, false},
		{"POST", "/locks/active/a", `{"title": "a", "lifetime": 10, "wait": 1}`, []string{"Origin", "https://evil.example"}, false},
		{"POST", "/v1/leases/own", `{}`, []string{"Sec-Fetch-Site", "same-origin", "Origin", s.URL}, true},
		{"POST", "/v1/leases/old-browser", `{}`, []string{"Origin", s.URL}, true},
		{"POST", "/v1/leases/program", `{}`, nil, true},
	} {
		var p api.Problem
		if c.ok {
			want(t, s.ask(t, c.method, c.path, c.body, nil, c.header...), http.StatusCreated)
		} else if a := s.ask(t, c.method, c.path, c.body, &p, c.header...); a.status != http.StatusForbidden || p.Code != api.CodeForbidden {
			t.Errorf("%s %s %v: %d %+v", c.method, c.path, c.header, a.status, p)
		}
	}
	want(t, s.ask(t, "GET", "/v1/leases/a", "", nil, "Origin", "https://evil.example"), http.StatusOK)
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/a", "", &l), http.StatusOK)
	if l.Holder != "" {
		t.Errorf("%+v", l)
	}
}

// A page can have its own name lead to this machine, and then it is the server's own page to the browser. A server that asks nobody who
// he is doesn't answer to such a name.
func TestForeignNames(t *testing.T) {
	for _, local := range []bool{true, false} {
		s := newSite(t, server.Options{LocalNames: local, RDLM: &rdlm.Options{}})
		for host, ok := range map[string]bool{
			"127.0.0.1": true, "127.0.0.1:7070": true, "[::1]:7070": true, "[::1]": true, "10.0.0.1:1": true, "localhost": true, "LocalHost:7070": true, "a.localhost.:1": true,
			"evil.example": false, "evil.example:7070": false, "localhost.evil.example": false, "127.0.0.1.evil.example:7070": false, "notlocalhost": false, "": false,
		} {
			for _, path := range []string{"/v1/leases", "/", "/nothing", "/locks/active/a"} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Host = host
				w := httptest.NewRecorder()
				s.srv.ServeHTTP(w, r)
				if refused := w.Code == http.StatusForbidden; refused != (local && !ok) {
					t.Errorf("%s asked for as %q, by local names only: %t: %d", path, host, local, w.Code)
				}
			}
		}
	}
}
