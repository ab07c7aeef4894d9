package server_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// openAdmin has everybody administrate RDLM's locks.
func openAdmin(t *testing.T) rdlm.Admin {
	t.Helper()
	a, err := rdlm.ParseAdmin("yes")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What RDLM's clients lock counts with all that their callers have; what is released, unlocked or over counts no more.
func TestFinding_V6_RDLMCountsInQuotas(t *testing.T) {
	var told ledger
	clk := clock.NewFake(0)
	s := clubOf(t, &told, server.Options{MaxNames: 2, MaxBytes: 4096, Clock: clk, RDLM: &rdlm.Options{Admin: openAdmin(t)}})
	const ask = `{"title": "x", "wait": 0, "lifetime": 60}`
	locks := func(who, name, body string, status int) (path string) {
		t.Helper()
		a := s.as(t, who, "POST", "/locks/"+name, body, nil)
		want(t, a, status)
		if u, err := url.Parse(a.header.Get("Location")); err == nil {
			path = u.Path
		}
		if status == http.StatusTooManyRequests && (a.header.Get("Retry-After") == "" || told.outcome(who, "acquire") != "too_many_requests") {
			t.Errorf("%s %s: told of %s", who, name, told.outcome(who, "acquire"))
		}
		return path
	}
	a := locks("alice", "a", ask, http.StatusCreated)
	want(t, s.as(t, "alice", "POST", "/v1/leases/b", `{"ttl": 60}`, nil), http.StatusCreated)
	locks("alice", "c", ask, http.StatusTooManyRequests)
	var p api.Problem
	s.tooMany(t, "names", s.as(t, "alice", "POST", "/v1/leases/c", `{}`, &p), p)
	locks("bob", "c", ask, http.StatusCreated)
	want(t, s.as(t, "alice", "PUT", a, "", nil), http.StatusOK)
	locks("alice", "c", ask, http.StatusTooManyRequests)
	want(t, s.as(t, "alice", "DELETE", a, "", nil), http.StatusNoContent)
	locks("alice", "d", ask, http.StatusCreated)
	locks("alice", "e", ask, http.StatusTooManyRequests)
	want(t, s.as(t, "ops", "DELETE", "/resources/d", "", nil), http.StatusNoContent)
	locks("alice", "e", ask, http.StatusCreated)
	clk.Jump(61 * time.Second)
	locks("alice", "f", ask, http.StatusCreated)
	locks("alice", "f", ask, http.StatusRequestTimeout) // it has that, and no more by asking again
	locks("alice", "g", ask, http.StatusCreated)
	locks("alice", "h", ask, http.StatusTooManyRequests)
	locks("carol", "i", `{"title": "`+strings.Repeat("x", 5000)+`", "wait": 0, "lifetime": 60}`, http.StatusTooManyRequests)
}

// Values of pools count as names; who has one may ask for it again.
func TestFinding_V6_IdentitiesCountInQuotas(t *testing.T) {
	var told ledger
	clk := clock.NewFake(0)
	s := clubOf(t, &told, server.Options{MaxNames: 2, MaxBytes: 4096, Clock: clk})
	const pool = "/v1/identities/machines"
	has := func(who, body string, status int) (id api.Assigned) {
		t.Helper()
		want(t, s.as(t, who, "POST", pool, body, &id), status)
		return id
	}
	has("alice", `{"range": "1-9", "as": "web1", "ttl": 60}`, http.StatusCreated)
	second := has("alice", `{"range": "1-9", "as": "web2", "ttl": 60}`, http.StatusCreated)
	refused := func(body, field string) {
		t.Helper()
		var p api.Problem
		s.tooMany(t, field, s.as(t, "alice", "POST", pool, body, &p), p)
		if told.outcome("alice", "assign") != "too_many_requests" {
			t.Errorf("told of %s", told.outcome("alice", "assign"))
		}
	}
	refused(`{"range": "1-9", "as": "web3", "ttl": 60}`, "names")
	refused(`{"range": "1-9"}`, "names")
	want(t, s.as(t, "alice", "POST", "/v1/leases/a", `{}`, nil), http.StatusTooManyRequests)
	has("alice", `{"range": "1-9", "as": "web1", "ttl": 60}`, http.StatusOK)
	has("bob", `{"range": "1-9", "as": "web3", "ttl": 60}`, http.StatusCreated)
	want(t, s.as(t, "alice", "DELETE", pool+"/"+second.Value+"?as=web2", "", nil), http.StatusNoContent)
	has("alice", `{"range": "1-9", "as": "web4", "ttl": 60}`, http.StatusCreated)
	clk.Jump(61 * time.Second)
	has("alice", `{"range": "1-9", "as": "web5", "ttl": 60}`, http.StatusCreated)
	refused(`{"range": "1-9", "ttl": 60, "info": {"x": "`+strings.Repeat("x", 5000)+`"}}`, "bytes")

	// What a session keeps is over with it.
	var ses api.Session
	want(t, s.as(t, "dave", "POST", "/v1/sessions", `{"ttl": 600}`, &ses), http.StatusCreated)
	const kept = `{"range": "1-9", "session": "`
	for range 2 {
		want(t, s.as(t, "dave", "POST", pool, kept+ses.Session+`"}`, nil, api.HeaderSecret, ses.Secret), http.StatusCreated)
	}
	want(t, s.as(t, "dave", "POST", pool, kept+ses.Session+`"}`, nil, api.HeaderSecret, ses.Secret), http.StatusTooManyRequests)
	want(t, s.as(t, "dave", "DELETE", sessionPath(ses.Session), "", nil, api.HeaderSecret, ses.Secret), http.StatusNoContent)
	has("dave", `{"range": "1-9", "ttl": 60}`, http.StatusCreated)
}

// A name that a caller has is not counted once more when it sends the request again.
func TestFinding_V6_TheSameRequestCountsOnce(t *testing.T) {
	var told ledger
	s := clubOf(t, &told, server.Options{MaxNames: 1})
	for range 3 {
		want(t, s.as(t, "alice", "POST", "/v1/leases/a", `{"ttl": 600}`, nil, "Idempotency-Key", "k"), http.StatusCreated)
	}
	want(t, s.as(t, "alice", "POST", "/v1/leases/b", `{}`, nil), http.StatusTooManyRequests)
}

// Orders that wait count as other requests that do: nothing is ordered that may not wait.
func TestFinding_V6_OrdersThatWaitCount(t *testing.T) {
	var told ledger
	s := clubOf(t, &told, server.Options{MaxWaiting: 1})
	want(t, s.as(t, "alice", "POST", "/v1/leases/a", `{"ttl": 600}`, nil), http.StatusCreated)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	defer func() { leave(); <-done }()
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/leases/a", strings.NewReader(`{"wait": 600}`))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer ops")
		if resp, err := s.Client().Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	for s.srv.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	var p api.Problem
	s.tooMany(t, "wait", s.as(t, "ops", "POST", "/v1/leases/b/pause", `{"reason": "drill", "wait": 60}`, &p), p)
	s.tooMany(t, "wait", s.as(t, "ops", "POST", "/v1/leases/a/handoff", `{"any": true, "wait": 60}`, &p), p)
	want(t, s.as(t, "ops", "POST", "/v1/leases/b/resume", ``, nil), http.StatusConflict) // it was not paused
	want(t, s.as(t, "ops", "POST", "/v1/leases/b/pause", `{"reason": "drill"}`, nil), http.StatusOK)
}
