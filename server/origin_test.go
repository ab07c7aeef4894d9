package server_test

import (
	"net/http"
	"testing"

	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/server/rdlm"
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
		var p wire.Problem
		if c.ok {
			want(t, s.ask(t, c.method, c.path, c.body, nil, c.header...), http.StatusCreated)
		} else if a := s.ask(t, c.method, c.path, c.body, &p, c.header...); a.status != http.StatusForbidden || p.Code != wire.CodeForbidden {
			t.Errorf("%s %s %v: %d %+v", c.method, c.path, c.header, a.status, p)
		}
	}
	want(t, s.ask(t, "GET", "/v1/leases/a", "", nil, "Origin", "https://evil.example"), http.StatusOK)
	var l wire.Lease
	want(t, s.ask(t, "GET", "/v1/leases/a", "", &l), http.StatusOK)
	if l.Holder != "" {
		t.Errorf("%+v", l)
	}
}
