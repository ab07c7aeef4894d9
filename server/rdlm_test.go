package server_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// What is done by RDLM's protocol is told as what is done by the server's own: in the audit log, the metrics and on the board.
func TestRDLMIsTold(t *testing.T) {
	events := make(chan server.Event, 100)
	admin, err := rdlm.ParseAdmin("yes")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, server.Options{RDLM: &rdlm.Options{Admin: admin}, OnEvent: func(e server.Event) { events <- e }})
	w := s.stream(t, "", "")
	w.next()
	lock := s.ask(t, "POST", "/locks/job", `{"title": "me", "wait": 0, "lifetime": 60}`, nil)
	want(t, lock, http.StatusCreated)
	held := w.lease("job", api.StateHeld)
	path := strings.TrimPrefix(lock.header.Get("Location"), s.URL)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/locks/job", `{"title": "other", "wait": 0, "lifetime": 60}`, 408},
		{"POST", "/locks/job", `{`, 400},
		{"PUT", path, "", 200},
		{"GET", path, "", 200},
		{"DELETE", path, "", 204},
		{"DELETE", path, "", 404},
		{"DELETE", "/resources/job", "", 404},
		{"GET", "/resources", "", 200},
	} {
		want(t, s.ask(t, c.method, c.path, c.body, nil), c.status)
		switch c.method + strconv.Itoa(c.status) {
		case "PUT200":
			w.lease("job", api.StateHeld) // renewed
		case "DELETE204":
			w.lease("job", api.StateFree)
		}
	}
	for _, is := range []string{
		"acquire job ok", "acquire job held", "acquire job invalid_request", "renew job ok", "show job ok", "release job ok",
		"release job not_current", "unlock job not_found", "list  ok",
	} {
		e := <-events
		if got := fmt.Sprintf("%s %s %s", e.Op, e.Name, e.Outcome); got != is || e.Time.IsZero() || e.Remote == "" {
			t.Errorf("told %q, want %q: %+v", got, is, e)
		}
		if e.Outcome == "ok" && e.Op != "list" && e.Op != "show" && (e.Holder != held.Holder || e.Token != held.Token) {
			t.Errorf("%s by %s under %d, want %s, %d", e.Op, e.Holder, e.Token, held.Holder, held.Token)
		}
	}
	text := s.scrape(t)
	for _, line := range []string{
		`leasehold_transitions_total{reason="acquired"} 1`, `leasehold_transitions_total{reason="released"} 1`,
		`leasehold_acquire_wait_seconds_count 1`, `leasehold_renew_duration_seconds_count 1`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// An administrator of RDLM's needs what the policy wants of everybody who ends the holds of others.
func TestRDLMAdminNeedsPermission(t *testing.T) {
	admin, err := rdlm.ParseAdmin("yes")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		not          server.Action
		method, path string
	}{
		{server.Break, "DELETE", "/resources"},
		{server.Break, "DELETE", "/resources/job"},
		{server.Read, "GET", "/resources"},
		{server.Read, "GET", "/resources/job"},
		{server.Acquire, "POST", "/locks/job"},
		{server.Acquire, "DELETE", "/locks/job/1"},
	} {
		s := newSite(t, server.Options{
			RDLM:         &rdlm.Options{Admin: admin},
			Authenticate: func(*http.Request) (server.Caller, error) { return allBut(c.not), nil },
		})
		want(t, s.ask(t, c.method, c.path, "", nil), http.StatusForbidden)
	}
}

// What HTTP wants of every server: HEAD where there is GET, and a challenge to who isn't known.
func TestManners(t *testing.T) {
	s := newSite(t, server.Options{})
	for _, path := range []string{"/v1/leases", "/v1/leases/job", "/v1/openapi.yaml", "/healthz"} {
		want(t, s.ask(t, "HEAD", path, "", nil), http.StatusOK)
	}
	if a := s.ask(t, "HEAD", "/v1/watch", "", nil); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET" {
		t.Errorf("%+v", a)
	}
	g := s.acquired(t, "job", "")
	a := s.ask(t, "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret)
	if _, sent := a.header["Content-Length"]; a.status != http.StatusNoContent || sent {
		t.Errorf("RFC 9110, 8.6, allows no Content-Length with %+v", a)
	}
	closed := newSite(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return nil, fmt.Errorf("who?") }})
	if a := closed.ask(t, "GET", "/v1/leases", "", nil); a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%+v", a)
	}
}
