package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

func (s *site) assigned(t *testing.T, pool, body string, status int) api.Assigned {
	t.Helper()
	var a api.Assigned
	want(t, s.ask(t, "POST", "/v1/identities/"+pool, body, &a), status)
	return a
}

func (s *site) refused(t *testing.T, method, path, body string, code api.Code, header ...string) api.Problem {
	t.Helper()
	var p api.Problem
	a := s.ask(t, method, path, body, &p, header...)
	if p.Code != code || a.status != code.Status() {
		t.Errorf("%s %s %s: %d %+v, want %s", method, path, body, a.status, p, code)
	}
	return p
}

// One request gives a machine a value that is its own, and the same request again the same one.
func TestAssign(t *testing.T) {
	s := newSite(t, server.Options{})
	a := s.assigned(t, "machines", `{"range": "1-2", "as": "web1", "info": {"role": "web"}}`, http.StatusCreated)
	if a.As != "web1" || a.Token == 0 || a.Kept != api.KeptAssigned || !strings.HasPrefix(a.Holder, "web1/") || a.Ceiling == nil ||
		time.Duration(*a.TTL) != 366*24*time.Hour || fmt.Sprint(a.Number) != a.Value || a.Info["role"] != "web" || a.Renewed {
		t.Errorf("%+v", a)
	}
	again := s.assigned(t, "machines", `{"as": "web1", "ttl": "1h"}`, http.StatusOK)
	if again.Value != a.Value || again.Sequencer != a.Sequencer || !again.Renewed || time.Duration(*again.TTL) != time.Hour {
		t.Errorf("%+v, then %+v", a, again)
	}
	var v api.Verification
	want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+a.Sequencer+`"}`, &v), http.StatusOK)
	if !v.Current {
		t.Errorf("%+v", v)
	}
	b := s.assigned(t, "machines", `{"range": "1-2", "as": "web2"}`, http.StatusCreated)
	if b.Value == a.Value {
		t.Errorf("both have %s", a.Value)
	}
	p := s.refused(t, "POST", "/v1/identities/machines", `{"as": "web3"}`, api.CodeExhausted)
	if p.Name != "machines" || p.ExpiresIn == nil {
		t.Errorf("%+v", p)
	}
	var all api.Identities
	want(t, s.ask(t, "GET", "/v1/identities/machines", "", &all), http.StatusOK)
	if len(all.Identities) != 2 || all.Range != "1-2" || all.Identities[0].Value != "1" || all.Identities[1].As == "" {
		t.Errorf("%+v", all)
	}
	s.refused(t, "DELETE", "/v1/identities/machines/"+a.Value+"?as=web2", "", api.CodeNotCurrent)
	s.refused(t, "DELETE", "/v1/identities/machines/"+a.Value, "", api.CodeInvalid)
	want(t, s.ask(t, "DELETE", "/v1/identities/machines/"+a.Value+"?as=web1&used=2026-01-02T15:04:05Z", "", nil), http.StatusNoContent)
	s.refused(t, "DELETE", "/v1/identities/machines/"+a.Value+"?as=web1", "", api.CodeNotCurrent)
	want(t, s.ask(t, "DELETE", "/v1/identities/machines/"+b.Value, "", nil, fence.Header, b.Sequencer), http.StatusNoContent)
	s.assigned(t, "machines", `{"as": "web3"}`, http.StatusCreated)
}

// What is wrong with a request is told, and nothing is assigned.
func TestAssignMistakes(t *testing.T) {
	s := newSite(t, server.Options{})
	s.refused(t, "POST", "/v1/identities/machines", `{"as": "web1"}`, api.CodeUndeclared)
	s.refused(t, "GET", "/v1/identities/machines", "", api.CodeNotFound)
	s.refused(t, "DELETE", "/v1/identities/machines/1?as=web1", "", api.CodeNotFound)
	s.assigned(t, "machines", `{"range": "1-9", "as": "web1", "value": "4"}`, http.StatusCreated)
	for body, code := range map[string]api.Code{
		`{"range": "9-1"}`:                                       api.CodeInvalid,
		`{"range": "1-9", "names": ["a"]}`:                       api.CodeInvalid,
		`{"range": "1-10", "as": "web2"}`:                        api.CodeMismatch,
		`{"as": "web1", "value": "5"}`:                           api.CodeMismatch,
		`{"as": "web2", "value": "4"}`:                           api.CodeHeld,
		`{"as": "web2", "value": "10"}`:                          api.CodeInvalid,
		`{"as": "web2", "ttl": 1e9}`:                             api.CodeInvalid,
		`{"as": "web2", "window": "31d"}`:                        api.CodeInvalid,
		`{"as": "web2", "window": "721h"}`:                       api.CodeInvalid,
		`{"as": "a\nb"}`:                                         api.CodeInvalid,
		`{"as": "` + strings.Repeat("a", 256) + `"}`:             api.CodeInvalid,
		`{"as": "` + strings.Repeat("a", 250) + `"}`:             api.CodeInvalid,
		`{"as": "web2", "session": ".session/x"}`:                api.CodeInvalid,
		`{"as": "web2", "session": ".session/x/y/z"}`:            api.CodeNotCurrent,
		`{"rage": "1-9"}`:                                        api.CodeInvalid,
		`{"info": {"a": "` + strings.Repeat("a", 70_000) + `"}}`: api.CodeInvalid,
	} {
		s.refused(t, "POST", "/v1/identities/machines", body, code)
	}
	s.refused(t, "DELETE", "/v1/identities/machines/4?as=web1&used=now", "", api.CodeInvalid)
	s.refused(t, "DELETE", "/v1/identities/machines/40?as=web1", "", api.CodeInvalid)
	var all api.Identities
	want(t, s.ask(t, "GET", "/v1/identities/machines", "", &all), http.StatusOK)
	if len(all.Identities) != 1 {
		t.Errorf("%+v", all)
	}
}

// A request without a name that is sent again is given the same value; without a key it is another one.
func TestAssignIsIdempotent(t *testing.T) {
	s := newSite(t, server.Options{})
	var values []string
	for _, key := range []string{"k1", "k1", "k2", "", ""} {
		var a api.Assigned
		s.ask(t, "POST", "/v1/identities/nets", `{"prefix": "10.0.0.0/8", "bits": 16}`, &a, api.HeaderKey, key)
		values = append(values, a.Value)
	}
	if values[0] != values[1] {
		t.Errorf("the same request: %v", values)
	}
	if slices.Sort(values[1:]); len(slices.Compact(values[1:])) != 4 {
		t.Errorf("other requests: %v", values)
	}
	s.assigned(t, "a%2Fb", `{"names": ["red/green"], "as": "x/y"}`, http.StatusCreated)
	want(t, s.ask(t, "DELETE", "/v1/identities/a%2Fb/red%2Fgreen?as=x/y", "", nil), http.StatusNoContent)
}

// What is assigned for a session is kept by it, and free when it is closed.
func TestAssignForASession(t *testing.T) {
	s := newSite(t, server.Options{})
	var session api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", `{"holder": "worker", "ttl": "1m"}`, &session), http.StatusCreated)
	body := `{"range": "1-1", "as": "worker", "session": "` + session.Session + `"}`
	assigned := func(status int) (a api.Assigned) {
		want(t, s.ask(t, "POST", "/v1/identities/workers", body, &a, "Leasehold-Secret", session.Secret), status)
		return a
	}
	s.refused(t, "POST", "/v1/identities/workers", body, api.CodeSecret)
	a := assigned(http.StatusCreated)
	if a.Holder != session.Holder || a.Session != session.Session || a.Kept != api.KeptRunning || a.TTL != nil {
		t.Errorf("%+v", a)
	}
	if again := assigned(http.StatusOK); again.Token != a.Token {
		t.Errorf("%+v, then %+v", a, again)
	}
	s.refused(t, "POST", "/v1/identities/workers", `{"as": "worker"}`, api.CodeHeld)
	s.refused(t, "DELETE", "/v1/identities/workers/1?as=worker", "", api.CodeHeld)
	want(t, s.ask(t, "DELETE", "/v1/sessions/"+strings.ReplaceAll(session.Session, "/", "%2F"), "", nil, "Leasehold-Secret", session.Secret), http.StatusNoContent)
	s.refused(t, "POST", "/v1/identities/workers", body, api.CodeNotCurrent)
	if b := s.assigned(t, "workers", `{"as": "other"}`, http.StatusCreated); b.Token <= a.Token {
		t.Errorf("%+v after %+v", b, a)
	}
}

// only may do one thing.
type only struct {
	action server.Action
	name   string
}

func (o only) Name() string { return "ci" }

func (o only) May(action server.Action, name string) bool {
	prefix, _ := strings.CutSuffix(o.name, "*")
	return action == o.action && strings.HasPrefix(name, prefix)
}

// A policy allows a caller pools and layouts by the names of their leases; what is done is told.
func TestPolicyOfIdentities(t *testing.T) {
	var may server.Caller
	var events []server.Event
	s := newSite(t, server.Options{
		Authenticate: func(*http.Request) (server.Caller, error) {
			if may == nil {
				return nil, errors.New("who is it?")
			}
			return may, nil
		},
		OnEvent: func(e server.Event) { events = append(events, e) },
	})
	s.refused(t, "POST", "/v1/identities/machines", `{"range": "1-9"}`, api.CodeUnauthenticated)
	may = only{server.Assign, "identity/machines/*"}
	a := s.assigned(t, "machines", `{"range": "1-9"}`, http.StatusCreated)
	if last := events[len(events)-1]; last.Name != "identity/machines/"+a.Value || last.Token != a.Token || last.Op != "assign" || last.Caller != "ci" {
		t.Errorf("told: %+v", last)
	}
	if !strings.HasPrefix(a.Holder, "ci/") {
		t.Errorf("%+v", a)
	}
	s.refused(t, "POST", "/v1/identities/machines2", `{"range": "1-9"}`, api.CodeForbidden)
	s.refused(t, "GET", "/v1/identities/machines", "", api.CodeForbidden)
	s.refused(t, "GET", "/v1/ids/twitter", "", api.CodeForbidden)
	may = only{server.Read, "*"}
	s.refused(t, "POST", "/v1/identities/machines", `{"range": "1-9"}`, api.CodeForbidden)
	s.refused(t, "DELETE", "/v1/identities/machines/"+a.Value+"?as=x", "", api.CodeForbidden)
	want(t, s.ask(t, "GET", "/v1/identities/machines", "", nil), http.StatusOK)
	may = only{server.Assign, "ids/twitter"}
	want(t, s.ask(t, "GET", "/v1/ids/twitter", "", nil), http.StatusOK)
	s.refused(t, "GET", "/v1/ids/tsid", "", api.CodeForbidden)
}
