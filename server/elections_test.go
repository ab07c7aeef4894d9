package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
)

// stand has a candidate of that name stand for election until the test ends.
func (s *site) stand(t *testing.T, name string) {
	t.Helper()
	st := s.db.Open()
	m, err := lease.NewManager(st, lease.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- election.Run(ctx, m, "job", election.Callbacks{
			OnStartedLeading: func(ctx context.Context, _ election.Term) { <-ctx.Done() },
		}, election.Options{Name: name})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		_ = m.Close()
		_ = st.Close()
	})
}

// standing blocks until the name "job" is as ok wants it.
func (s *site) standing(t *testing.T, ok func(api.Lease) bool) api.Lease {
	t.Helper()
	for {
		var l api.Lease
		want(t, s.ask(t, "GET", "/v1/leases/job", "", &l), http.StatusOK)
		if ok(l) {
			return l
		}
		if t.Context().Err() != nil {
			t.Fatalf("%+v", l)
		}
	}
}

func TestHandoff(t *testing.T) {
	events := make(chan server.Event, 100)
	s := newSite(t, server.Options{OnEvent: func(e server.Event) {
		if e.Action == server.Handoff {
			events <- e
		}
	}})
	s.stand(t, "east")
	east := s.standing(t, func(l api.Lease) bool { return l.Holder != "" && len(l.Candidates) == 1 })
	s.stand(t, "west")
	s.standing(t, func(l api.Lease) bool { return len(l.Candidates) == 2 })
	for body, code := range map[string]api.Code{
		`{}`:                         api.CodeInvalid,
		`{"to": "x", "any": true}`:   api.CodeInvalid,
		`{"to": "x"}`:                api.CodeNoCandidate,
		`{"to": "west", "token": 1}`: api.CodeNotCurrent,
		`{"to": "west", "reason": "` + strings.Repeat("x", 600) + `"}`: api.CodeInvalid,
	} {
		var p api.Problem
		want(t, s.ask(t, "POST", "/v1/leases/job/handoff", body, &p), code.Status())
		if p.Code != code || code != api.CodeInvalid && (p.Holder != east.Holder || p.Token != east.Token || p.Name != "job") {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for range 5 {
		<-events
	}
	var l api.Lease
	order := `{"to": "west", "token": ` + east.Token.String() + `, "reason": "drill", "wait": 60}`
	want(t, s.ask(t, "POST", "/v1/leases/job/handoff", order, &l), http.StatusOK)
	if !strings.HasPrefix(l.Holder, "west/") || l.Token <= east.Token {
		t.Errorf("after the hand-off: %+v", l)
	}
	if e := <-events; e.Holder != east.Holder || e.Token != east.Token || e.Note != "to west: drill" || e.Op != "hand over" || e.Outcome != "ok" {
		t.Errorf("told %+v", e)
	}
	var again api.Lease
	want(t, s.ask(t, "POST", "/v1/leases/job/handoff", order, &again), http.StatusOK)
	if again.Token != l.Token {
		t.Errorf("sent again: %+v, before %+v", again, l)
	}
	if text := s.scrape(t); !strings.Contains(text, `leasehold_transitions_total{reason="handed_over"} 1`) {
		t.Errorf("%s", text)
	}
	want(t, s.ask(t, "POST", "/v1/leases/job/handoff", `{"any": true, "wait": 60}`, &l), http.StatusOK)
	if l.Holder != east.Holder || l.Token <= again.Token {
		t.Errorf("handed to anybody: %+v", l)
	}
}

// What is held by no candidate, or by nobody, can't be handed over, and the problem says so.
func TestHandoffOfNoElection(t *testing.T) {
	s := newSite(t, server.Options{})
	g := s.acquired(t, "job", "")
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/job/handoff", `{"any": true}`, &p), http.StatusConflict)
	if p.Code != api.CodeNotElected || p.Holder != g.Holder || p.Token != g.Token {
		t.Errorf("%+v", p)
	}
	var none api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/free/handoff", `{"any": true}`, &none), http.StatusConflict)
	if none.Code != api.CodeNoLeader || none.Name != "free" {
		t.Errorf("%+v", none)
	}
}

func TestPauseAndResume(t *testing.T) {
	s := newSite(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return caller{"ops"}, nil }})
	s.stand(t, "east")
	s.standing(t, func(l api.Lease) bool { return l.Holder != "" && len(l.Candidates) == 1 })
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/job/pause", `{}`, &p), http.StatusBadRequest)
	if p.Field != "reason" {
		t.Errorf("%+v", p)
	}
	want(t, s.ask(t, "POST", "/v1/leases/job/resume", ``, &p), http.StatusConflict)
	if p.Code != api.CodeNotPaused {
		t.Errorf("%+v", p)
	}
	var l, again api.Lease
	want(t, s.ask(t, "POST", "/v1/leases/job/pause", `{"reason": "the database is being moved", "wait": 60}`, &l), http.StatusOK)
	if l.Holder != "" || l.Paused == nil || l.Paused.By != "ops" || l.Paused.Reason != "the database is being moved" || l.Paused.Since.IsZero() {
		t.Fatalf("%+v", l)
	}
	want(t, s.ask(t, "POST", "/v1/leases/job/pause", `{"reason": "the database is being moved"}`, &again), http.StatusOK)
	if !again.Paused.Since.Equal(l.Paused.Since) {
		t.Errorf("asked for again: %+v, first %+v", again.Paused, l.Paused)
	}
	want(t, s.ask(t, "POST", "/v1/leases/job/handoff", `{"any": true}`, &p), http.StatusConflict)
	if p.Code != api.CodeNoLeader || !strings.Contains(p.Detail, "paused by ops") {
		t.Errorf("%+v", p)
	}
	var resumed api.Lease
	want(t, s.ask(t, "POST", "/v1/leases/job/resume", ``, &resumed), http.StatusOK)
	if resumed.Paused != nil {
		t.Errorf("%+v", resumed)
	}
	s.standing(t, func(l api.Lease) bool { return l.Holder != "" })
	if text := s.scrape(t); !strings.Contains(text, `leasehold_transitions_total{reason="paused"} `) {
		t.Errorf("%s", text)
	}
}

// caller is somebody who may do everything.
type caller struct{ name string }

func (c caller) Name() string                 { return c.name }
func (caller) May(server.Action, string) bool { return true }

// An order of an operator is an action of its own: who may only acquire or break may not give it.
func TestOrdersNeedPermission(t *testing.T) {
	for path, action := range map[string]server.Action{"handoff": server.Handoff, "pause": server.Pause, "resume": server.Pause} {
		s := newSite(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return allBut(action), nil }})
		var p api.Problem
		want(t, s.ask(t, "POST", "/v1/leases/job/"+path, `{}`, &p), http.StatusForbidden)
		if !strings.Contains(p.Detail, string(action)) {
			t.Errorf("%+v", p)
		}
	}
}

// allBut is a caller who may do everything but one thing.
type allBut server.Action

func (allBut) Name() string { return "dev" }

func (a allBut) May(action server.Action, _ string) bool { return action != server.Action(a) }

// What is no election takes no notice of a pause: the wait ends with the server at the latest, and the answer says who holds it.
func TestPauseOfNoElection(t *testing.T) {
	s := newSite(t, server.Options{})
	g := s.acquired(t, "job", "")
	answered := make(chan api.Lease, 1)
	go func() {
		var l api.Lease
		if a := s.ask(t, "POST", "/v1/leases/job/pause", `{"reason": "drill", "wait": 600}`, &l); a.status != http.StatusOK {
			t.Errorf("%d", a.status)
		}
		answered <- l
	}()
	s.standing(t, func(l api.Lease) bool { return l.Paused != nil })
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	if l := <-answered; l.Holder != g.Holder || l.Paused == nil {
		t.Errorf("%+v", l)
	}
}
