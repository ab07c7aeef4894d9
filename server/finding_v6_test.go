package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// clubOf is a server with bounds, whose callers say their names and may do everything.
func clubOf(t *testing.T, told *ledger, opts server.Options) *site {
	t.Helper()
	opts.OnEvent = told.note
	opts.Authenticate = func(r *http.Request) (server.Caller, error) {
		name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return member{name, append(server.Actions(), "")}, nil
	}
	return newSite(t, opts)
}

func (s *site) tooMany(t *testing.T, field string, a answer, p api.Problem) {
	t.Helper()
	if a.status != http.StatusTooManyRequests || p.Code != api.CodeTooMany || p.Field != field || a.header.Get("Retry-After") == "" {
		t.Errorf("%s: %d %+v, want too many %s", a.asked, a.status, p, field)
	}
}

// A caller may have so many names, sessions and bytes by a server; others may have theirs, and what is let go of makes room.
func TestFinding_V6_QuotasOfACaller(t *testing.T) {
	var told ledger
	s := clubOf(t, &told, server.Options{MaxNames: 2, MaxSessions: 2, MaxBytes: 4096, MaxSessionTTL: time.Hour})
	var p api.Problem
	names := map[string]api.Grant{}
	for _, name := range []string{"a", "b"} {
		var g api.Grant
		want(t, s.as(t, "alice", "POST", "/v1/leases/"+name, `{"ttl": 600}`, &g, "Idempotency-Key", name), http.StatusCreated)
		names[name] = g
	}
	s.tooMany(t, "names", s.as(t, "alice", "POST", "/v1/leases/c", `{"ttl": 600}`, &p), p)
	if told.outcome("alice", "acquire") != "too_many_requests" {
		t.Errorf("the refusal is not told: %+v", told.events)
	}
	want(t, s.as(t, "bob", "POST", "/v1/leases/c", `{"ttl": 600}`, nil), http.StatusCreated)
	a := names["a"]
	want(t, s.as(t, "alice", "PUT", "/v1/leases/a", "", nil, "Leasehold-Sequencer", a.Sequencer, api.HeaderSecret, a.Secret), http.StatusOK)
	want(t, s.as(t, "alice", "DELETE", "/v1/leases/a", "", nil, "Leasehold-Sequencer", a.Sequencer, api.HeaderSecret, a.Secret), http.StatusNoContent)
	want(t, s.as(t, "alice", "POST", "/v1/leases/c2", `{"ttl": 600}`, nil), http.StatusCreated)

	var ses [2]api.Session
	for i := range ses {
		want(t, s.as(t, "carol", "POST", "/v1/sessions", `{"ttl": 600}`, &ses[i]), http.StatusCreated)
	}
	s.tooMany(t, "sessions", s.as(t, "carol", "POST", "/v1/sessions", `{}`, &p), p)
	want(t, s.as(t, "carol", "DELETE", sessionPath(ses[0].Session), "", nil, api.HeaderSecret, ses[0].Secret), http.StatusNoContent)
	want(t, s.as(t, "carol", "POST", "/v1/sessions", `{}`, nil), http.StatusCreated)

	s.tooMany(t, "bytes", s.as(t, "dave", "POST", "/v1/sessions", `{"info": {"x": "`+strings.Repeat("x", 60_000)+`"}}`, &p), p)
	s.tooMany(t, "bytes", s.as(t, "dave", "POST", "/v1/leases/d", `{"info": {"x": "`+strings.Repeat("x", 5_000)+`"}}`, &p), p)
	var long api.Problem
	if want(t, s.as(t, "erin", "POST", "/v1/sessions", `{"ttl": "8000h"}`, &long), http.StatusBadRequest); long.Field != "ttl" {
		t.Errorf("%+v", long)
	}
}

// What has expired counts no more.
func TestFinding_V6_QuotasForgetWhatIsOver(t *testing.T) {
	var told ledger
	clk := clock.NewFake(0)
	s := clubOf(t, &told, server.Options{MaxNames: 1, MaxSessions: 1, Clock: clk})
	want(t, s.as(t, "alice", "POST", "/v1/leases/a", `{"ttl": 60}`, nil), http.StatusCreated)
	want(t, s.as(t, "alice", "POST", "/v1/leases/b", `{"ttl": 60}`, nil), http.StatusTooManyRequests)
	clk.Jump(61 * time.Second)
	want(t, s.as(t, "alice", "POST", "/v1/leases/b", `{"ttl": 60}`, nil), http.StatusCreated)
	clk.Jump(61 * time.Second)
	var ses api.Session
	want(t, s.as(t, "alice", "POST", "/v1/sessions", `{"ttl": 60}`, &ses), http.StatusCreated)
	want(t, s.as(t, "alice", "POST", "/v1/leases/c", `{"session": "`+ses.Session+`"}`, nil, api.HeaderSecret, ses.Secret), http.StatusCreated)
	want(t, s.as(t, "alice", "POST", "/v1/leases/d", `{}`, nil), http.StatusTooManyRequests)
	clk.Jump(61 * time.Second)
	want(t, s.as(t, "alice", "POST", "/v1/leases/d", `{}`, nil), http.StatusCreated)
}

// A caller that sends too many requests a second is told when to come again; others are served.
func TestFinding_V6_RateOfACaller(t *testing.T) {
	var told ledger
	clk := clock.NewFake(0)
	s := clubOf(t, &told, server.Options{MaxRate: 0.01, Clock: clk})
	var p api.Problem
	want(t, s.as(t, "alice", "GET", "/v1/leases/a", "", nil), http.StatusOK)
	a := s.as(t, "alice", "GET", "/v1/leases/a", "", &p)
	s.tooMany(t, "rate", a, p)
	if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 50 || after > 100 || told.outcome("alice", "show") != "too_many_requests" {
		t.Errorf("Retry-After: %s, %+v", a.header.Get("Retry-After"), told.events)
	}
	want(t, s.as(t, "bob", "GET", "/v1/leases/a", "", nil), http.StatusOK)
	clk.Jump(100 * time.Second)
	want(t, s.as(t, "alice", "GET", "/v1/leases/a", "", nil), http.StatusOK)
	want(t, s.as(t, "alice", "GET", "/v1/leases/a", "", nil), http.StatusTooManyRequests)
}

// Attempts by callers who prove nothing are bounded by their address, and counted.
func TestFinding_V6_RefusedCallersAreCounted(t *testing.T) {
	s := newSite(t, server.Options{MaxRate: 1, Clock: clock.NewFake(0), Authenticate: func(r *http.Request) (server.Caller, error) {
		if name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); name == "nobody" {
			return nil, errors.New("who?")
		}
		return member{"alice", append(server.Actions(), "")}, nil
	}})
	for _, status := range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusTooManyRequests} {
		want(t, s.as(t, "nobody", "GET", "/v1/leases/a", "", nil), status)
	}
	want(t, s.as(t, "alice", "GET", "/v1/leases/a", "", nil), http.StatusOK)
	text := s.text(t, "/metrics")
	for _, line := range []string{`{op="show",outcome="unauthenticated"} 2`, `{op="show",outcome="too_many_requests"} 1`} {
		if !strings.Contains(text, "\nleasehold_requests_total"+line+"\n") {
			t.Errorf("no line %s:\n%s", line, text)
		}
	}
}

// /metrics has how long it took to acquire and to release.
func TestFinding_V6_HistogramsOfAcquireAndRelease(t *testing.T) {
	s := newSite(t, server.Options{})
	g := s.acquired(t, "a", `{}`)
	want(t, s.ask(t, "DELETE", "/v1/leases/a?holder="+url.QueryEscape(g.Holder)+"&token="+g.Token.String(), "", nil, api.HeaderSecret, g.Secret), http.StatusNoContent)
	text := s.text(t, "/metrics")
	for _, what := range []string{"acquire", "release"} {
		if line := fmt.Sprintf("\nleasehold_%s_duration_seconds_count 1\n", what); !strings.Contains(text, line) {
			t.Errorf("no line %s", line)
		}
	}
}
