package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// session returns the next event, which must be one of that session.
func (s *sse) session(id string) api.SessionEvent {
	s.t.Helper()
	kind, _ := s.next()
	var e api.SessionEvent
	if err := json.Unmarshal(s.data, &e); err != nil || kind != "session" || e.Session != id {
		s.t.Fatalf("event %s: %s, %v; want one of the session %s", kind, s.data, err, id)
	}
	return e
}

// kept opens a session, and has it keep names.
func (s *site) kept(t *testing.T, names ...string) api.Session {
	t.Helper()
	var open api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", `{"holder": "worker", "ttl": 60}`, &open), http.StatusCreated)
	for _, name := range names {
		want(t, s.ask(t, "POST", "/v1/leases/"+url.PathEscape(name), `{"session": "`+open.Session+`"}`, nil, "Leasehold-Secret", open.Secret), http.StatusCreated)
	}
	return open
}

// What is left of a lease that a session keeps is told by the session: once for each renewal, to those who watch one of its names.
func TestWatchSessions(t *testing.T) {
	s := newSite(t, server.Options{})
	open := s.kept(t, "a/1", "a/2", "b/1")
	path := "/v1/sessions/" + url.PathEscape(open.Session)
	w, other := s.stream(t, "?prefix=a/", ""), s.stream(t, "?prefix=c", "")
	for _, each := range []*sse{w, other} {
		if kind, _ := each.next(); kind != "reset" {
			t.Fatalf("the first event is %s", kind)
		}
	}
	first := w.session(open.Session)
	if first.Gone || time.Duration(first.TTL) != time.Minute || first.ExpiresIn == nil {
		t.Errorf("%+v", first)
	}
	for range 2 { // in any order
		if kind, e := w.next(); kind != "lease" || e.Lease.Session != open.Session || e.Lease.ExpiresIn != nil {
			t.Errorf("%s %+v", kind, e)
		}
	}
	for range 2 {
		begun := time.Now()
		want(t, s.ask(t, "PUT", path, "", nil, "Leasehold-Secret", open.Secret), http.StatusOK)
		again := w.session(open.Session)
		took := time.Since(begun) + time.Millisecond // so much of it has passed at most
		if again.Seq <= first.Seq || again.Gone || again.ExpiresIn == nil || time.Duration(*again.ExpiresIn) < time.Minute-took {
			t.Errorf("renewed: %+v after %+v", again, first)
		}
	}
	want(t, s.ask(t, "DELETE", path, "", nil, "Leasehold-Secret", open.Secret), http.StatusNoContent)
	if over := w.session(open.Session); !over.Gone || over.ExpiresIn != nil {
		t.Errorf("closed: %+v", over)
	}
	s.acquired(t, "c", "")
	other.lease("c", api.StateHeld) // nothing came before it

	// A stream that begins now is told that the session is over, whose record may be gone by then.
	late := s.stream(t, "?prefix=a/", "")
	late.next()
	if over := late.session(open.Session); !over.Gone {
		t.Errorf("%+v", over)
	}
}

// Whoever watches names to which a session comes later is told of that session.
func TestWatchSessionOfAnotherPrefix(t *testing.T) {
	s := newSite(t, server.Options{})
	open := s.kept(t, "a")
	s.acquired(t, "b", "")
	w := s.stream(t, "?prefix=b", "")
	w.next()
	w.lease("b", api.StateHeld)
	want(t, s.ask(t, "POST", "/v1/leases/bb", `{"session": "`+open.Session+`"}`, nil, "Leasehold-Secret", open.Secret), http.StatusCreated)
	w.lease("bb", api.StateHeld)
	w.session(open.Session)
}

// A session whose record isn't there is over: a lease that it kept is nobody's.
func TestWatchLostSession(t *testing.T) {
	s := newSite(t, server.Options{})
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	const gone = ".session/worker/1"
	if _, err := st.Put(t.Context(), store.Record{Key: "job", Owner: "worker", Token: 1, TTL: time.Minute, Session: gone, Nonce: "n"}); err != nil {
		t.Fatal(err)
	}
	w := s.stream(t, "", "")
	w.next()
	if over := w.session(gone); !over.Gone {
		t.Errorf("%+v", over)
	}
	w.lease("job", api.StateHeld)
}

// An election that was paused before anybody led is on the board, until it is resumed.
func TestWatchPausedBeforeAnybodyLed(t *testing.T) {
	s := newSite(t, server.Options{})
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	if err := election.SetPause(t.Context(), st, "boss", election.Pause{By: "ops", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	w := s.stream(t, "", "")
	w.next()
	if l := w.lease("boss", api.StateFree); l.Paused == nil || l.Paused.By != "ops" {
		t.Errorf("%+v", l)
	}
	if err := election.Resume(t.Context(), st, "boss", ""); err != nil {
		t.Fatal(err)
	}
	if kind, e := w.next(); kind != "lease" || !e.Gone || e.Lease.Name != "boss" {
		t.Errorf("%s %+v", kind, e)
	}
}

// A pause that ends by itself goes from the board, and from the answers, by the server's time of day.
func TestWatchPauseThatEnds(t *testing.T) {
	clk := clocktest.New(0)
	s := newSite(t, server.Options{Clock: clk})
	var l api.Lease
	want(t, s.ask(t, "POST", "/v1/leases/boss/pause", `{"reason": "drill", "for": "1h"}`, &l), http.StatusOK)
	if l.Paused == nil || l.Paused.Until.IsZero() || l.Paused.Until.Sub(l.Paused.Since) != time.Hour {
		t.Fatalf("%+v", l.Paused)
	}
	w := s.stream(t, "", "")
	w.next()
	if l := w.lease("boss", api.StateFree); l.Paused == nil || l.Paused.Until.IsZero() {
		t.Errorf("%+v", l)
	}
	clk.StepWall(time.Hour)
	if kind, e := w.next(); kind != "lease" || !e.Gone || e.Lease.Name != "boss" {
		t.Errorf("%s %+v", kind, e)
	}
	l = api.Lease{}
	want(t, s.ask(t, "GET", "/v1/leases/boss", "", &l), http.StatusOK)
	if l.Paused != nil {
		t.Errorf("%+v", l)
	}
}
