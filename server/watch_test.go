package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// sse reads a stream of server-sent events.
type sse struct {
	t     *testing.T
	lines *bufio.Scanner
	id    string
	data  []byte // of the event that came last
}

func (s *site) stream(t *testing.T, query, last string) *sse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/watch"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("%s %s", resp.Status, got)
	}
	return &sse{t: t, lines: bufio.NewScanner(resp.Body)}
}

// next returns the next event, beats left out.
func (s *sse) next() (kind string, e api.Event) {
	s.t.Helper()
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch field {
		case "id":
			s.id = value
		case "event":
			kind = value
		case "data":
			if kind == "beat" {
				continue
			}
			s.data = []byte(value)
			if err := json.Unmarshal(s.data, &e); err != nil {
				s.t.Fatal(err)
			}
			return kind, e
		}
	}
	return "end", e
}

// beat blocks until the stream says that all there was has been told.
func (s *sse) beat() {
	s.t.Helper()
	for kind := ""; s.lines.Scan(); {
		switch field, value, _ := strings.Cut(s.lines.Text(), ": "); {
		case field == "id":
			s.id = value
		case field == "event":
			kind = value
		case field == "data" && kind == "beat":
			return
		}
	}
	s.t.Fatal("the stream ended")
}

func (s *sse) lease(name string, state api.State) api.Lease {
	s.t.Helper()
	kind, e := s.next()
	if kind != "lease" || e.Lease.Name != name || e.Lease.State != state {
		s.t.Fatalf("event %s: %+v, want %s %s", kind, e.Lease, name, state)
	}
	return e.Lease
}

func TestWatch(t *testing.T) {
	s := newSite(t, server.Options{})
	a := s.acquired(t, "a", "")
	s.acquired(t, "other", "")
	w := s.stream(t, "?prefix=a", "")
	if kind, _ := w.next(); kind != "reset" {
		t.Fatalf("the first event is %s", kind)
	}
	w.lease("a", api.StateHeld)
	// What this server does is seen at once; what others do to the store, at the next look.
	want(t, s.ask(t, "DELETE", "/v1/leases/a", "", nil, "Leasehold-Sequencer", a.Sequencer, "Leasehold-Secret", a.Secret), http.StatusNoContent)
	w.lease("a", api.StateFree)
	missedFrom := w.id
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	if _, err := st.Put(t.Context(), store.Record{Key: "ab", Owner: "elsewhere", Token: 1, TTL: time.Minute, Nonce: "n"}); err != nil {
		t.Fatal(err)
	}
	w.lease("ab", api.StateHeld)

	again := s.stream(t, "?prefix=a", missedFrom)
	again.lease("ab", api.StateHeld)
	reset := s.stream(t, "?prefix=a", "another-server:5")
	if kind, _ := reset.next(); kind != "reset" {
		t.Errorf("after another server's events: %s", kind)
	}
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	for kind := ""; kind != "end"; {
		kind, _ = w.next()
	}
}

// Who has been told that there is nothing isn't told so again.
func TestWatchNothing(t *testing.T) {
	s := newSite(t, server.Options{})
	w := s.stream(t, "", "")
	if kind, _ := w.next(); kind != "reset" {
		t.Fatalf("the first event is %s", kind)
	}
	s.acquired(t, "a", "")
	w.lease("a", api.StateHeld)
}

// Who waits is on the board, too.
func TestWatchWaiters(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "job", "")
	w := s.stream(t, "", "")
	w.next()
	w.lease("job", api.StateHeld)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.ask(t, "POST", "/v1/leases/job", `{"wait": 60}`, nil)
	}()
	if l := w.lease("job", api.StateHeld); l.Waiters != 1 {
		t.Errorf("%+v", l)
	}
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	<-answered
}

// What is sent long after it happened says what is left of a lease now.
func TestWatchResumedLater(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "first", "")
	w := s.stream(t, "", "")
	w.next()
	w.lease("first", api.StateHeld)
	if w.id != "" {
		t.Errorf("a client could go on after %s, in the midst of all names", w.id)
	}
	w.beat()
	from := w.id
	s.acquired(t, "a", `{"ttl": 60}`)
	at := w.lease("a", api.StateHeld)
	time.Sleep(50 * time.Millisecond) // it is this time that must have been taken off
	late := s.stream(t, "", from).lease("a", api.StateHeld)
	if at.ExpiresIn == nil || late.ExpiresIn == nil || time.Duration(*at.ExpiresIn-*late.ExpiresIn) < 45*time.Millisecond {
		t.Errorf("left: %v, and later %v", at.ExpiresIn, late.ExpiresIn)
	}
}

// An election that is paused says so on the board, by whom and why, until it is resumed.
func TestWatchPaused(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "boss", "")
	w := s.stream(t, "", "")
	w.next()
	if l := w.lease("boss", api.StateHeld); l.Paused != nil {
		t.Errorf("%+v", l)
	}
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	if err := election.SetPause(t.Context(), st, "boss", election.Pause{By: "ops", Reason: "failover drill", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if l := w.lease("boss", api.StateHeld); l.Paused == nil || l.Paused.By != "ops" || l.Paused.Reason != "failover drill" || l.Paused.Since.IsZero() {
		t.Errorf("%+v", l)
	}
	if err := election.Resume(t.Context(), st, "boss", ""); err != nil {
		t.Fatal(err)
	}
	if l := w.lease("boss", api.StateHeld); l.Paused != nil {
		t.Errorf("%+v", l)
	}
}
