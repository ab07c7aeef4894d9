package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// Leasehold's own records are no leases, whatever is asked of them.
func TestFinding_V2_ReservedNamesOfAllCalls(t *testing.T) {
	s := newSite(t, server.Options{})
	var ses api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", `{"ttl": 60}`, &ses), http.StatusCreated)
	path := "/v1/leases/" + url.PathEscape(ses.Session)
	term := "?holder=" + url.QueryEscape(ses.Holder) + "&token=" + ses.Token.String()
	for _, c := range []struct{ method, path, body string }{
		{"POST", path, `{}`}, {"PUT", path + term, ``}, {"DELETE", path + term, ``}, {"GET", path, ``}, {"GET", path + "/history", ``},
		{"GET", path + "/waiters", ``}, {"POST", path + "/break", `{"token": ` + ses.Token.String() + `}`}, {"POST", path + "/handoff", `{"any": true}`},
		{"POST", path + "/pause", `{"reason": "x"}`}, {"POST", path + "/resume", ``},
		{"POST", "/v1/verify", `{"sequencer": "v1;1;.session/x;y"}`},
	} {
		var p api.Problem
		if a := s.ask(t, c.method, c.path, c.body, &p, api.HeaderSecret, ses.Secret); a.status != http.StatusBadRequest || p.Field != "name" {
			t.Errorf("%s %s: %d %+v", c.method, c.path, a.status, p)
		}
	}
	want(t, s.ask(t, "PUT", sessionPath(ses.Session), "", nil, api.HeaderSecret, ses.Secret), http.StatusOK)
}

// To make ids claims a number: no page of another site has a browser do that, though it is a GET. The refusal is told.
func TestFinding_V2_IDsOfForeignPages(t *testing.T) {
	var told ledger
	s := newSite(t, server.Options{OnEvent: told.note})
	want(t, s.ask(t, "GET", "/v1/ids/twitter", "", nil, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"), http.StatusForbidden)
	want(t, s.ask(t, "GET", "/v1/ids/twitter", "", nil, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	if told.outcome("", "cross-origin") != "forbidden" {
		t.Errorf("%+v", told.events)
	}
	for rec, err := range s.db.Open().List(t.Context(), "") {
		t.Errorf("%s, %v is in the store", rec.Key, err)
	}
	want(t, s.ask(t, "GET", "/v1/ids/twitter", "", nil, "Sec-Fetch-Site", "same-origin"), http.StatusOK)
	want(t, s.ask(t, "GET", "/v1/ids/twitter", "", nil), http.StatusOK)
}

// Behind a trusted proxy the client is whom the proxy says, in what is told of a request and in the limits; and nobody else is believed.
func TestFinding_V2_TrustedProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for _, c := range []struct {
		peer    string
		header  []string
		proxies []netip.Prefix
		want    string
	}{
		{"10.0.0.1:5", []string{"192.0.2.7"}, proxies, "192.0.2.7"},
		{"10.0.0.1:5", []string{"6.6.6.6, 192.0.2.7, 10.9.9.9"}, proxies, "192.0.2.7"}, // what the client says of itself is before that
		{"10.0.0.1:5", []string{"6.6.6.6", "192.0.2.7:1234"}, proxies, "192.0.2.7"},
		{"[2001:db8::1]:5", []string{"[2001:db9::7]:80"}, proxies, "2001:db9::7"},
		{"[::ffff:10.0.0.1]:5", []string{"::ffff:192.0.2.7"}, proxies, "192.0.2.7"},
		{"10.0.0.1:5", []string{"10.0.0.2, 10.0.0.3"}, proxies, "10.0.0.2"},
		{"10.0.0.1:5", nil, proxies, "10.0.0.1"},
		{"10.0.0.1:5", []string{"192.0.2.7, nonsense"}, proxies, "10.0.0.1"},
		{"192.0.2.1:5", []string{"192.0.2.7"}, proxies, "192.0.2.1"},
		{"10.0.0.1:5", []string{"192.0.2.7"}, nil, "10.0.0.1"},
	} {
		var told ledger
		s := newSite(t, server.Options{OnEvent: told.note, TrustedProxies: c.proxies})
		r := httptest.NewRequest(http.MethodGet, "/v1/leases/job", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.header
		s.srv.ServeHTTP(httptest.NewRecorder(), r)
		if got := told.events[0].Remote; got != c.want {
			t.Errorf("%s, %q: told of %s, want %s", c.peer, c.header, got, c.want)
		}
	}
}
