package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// named is a caller who may do everything.
type named string

func (n named) Name() string                 { return string(n) }
func (named) May(server.Action, string) bool { return true }

// Who waits for as much as it may is refused with 429, by whatever protocol; others, and what doesn't wait, are not.
func TestWaitingPerCaller(t *testing.T) {
	s := newSite(t, server.Options{
		MaxWaiting: 2, RDLM: &rdlm.Options{},
		Authenticate: func(r *http.Request) (server.Caller, error) { return named(r.Header.Get("Who")), nil },
	})
	s.acquired(t, "a", `{"ttl": 3600}`)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	waits := func(ctx context.Context, method, path, body, who string) {
		t.Helper()
		before := s.busy(t)
		done := make(chan struct{})
		t.Cleanup(func() { <-done })
		go func() {
			defer close(done)
			// One who has left the queue is counted for a moment more.
			for status := http.StatusTooManyRequests; status == http.StatusTooManyRequests; {
				req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Who", who)
				resp, err := s.Client().Do(req)
				if err != nil {
					return
				}
				status = resp.StatusCode
				_, _ = io.Copy(io.Discard, resp.Body) // until it is left
				_ = resp.Body.Close()
			}
		}()
		for deadline := time.Now().Add(2 * time.Minute); s.busy(t) == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s %s doesn't wait", method, path)
			}
		}
	}
	t.Cleanup(leave) // before those who wait are waited for
	first, end := context.WithCancel(ctx)
	waits(first, "POST", "/v1/leases/a", `{"wait": 60}`, "ci")
	waits(ctx, "POST", "/locks/a", `{"title": "x", "wait": 60, "lifetime": 60}`, "ci")
	const watch = "/v1/watch"
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/leases/a", `{"wait": 1}`}, {"GET", watch, ""},
	} {
		var p api.Problem
		got := s.ask(t, c.method, c.path, c.body, &p, "Who", "ci")
		want(t, got, http.StatusTooManyRequests)
		if p.Code != api.CodeTooMany || p.Field != "wait" || got.header.Get("Retry-After") == "" || !strings.Contains(p.Detail, "caller ci has 2") {
			t.Errorf("%s: %+v", c.path, p)
		}
	}
	got := s.ask(t, "POST", "/locks/a", `{"title": "x", "wait": 1, "lifetime": 60}`, nil, "Who", "ci")
	if want(t, got, http.StatusTooManyRequests); got.header.Get("Retry-After") == "" {
		t.Error("RDLM: it doesn't say when to come again")
	}
	want(t, s.ask(t, "POST", "/v1/leases/a", `{}`, nil, "Who", "ci"), http.StatusConflict)
	waits(ctx, "POST", "/v1/leases/a", `{"wait": 60}`, "ops")
	waits(ctx, "POST", "/v1/leases/a", `{"wait": 60}`, "")
	end()
	for s.srv.Waiting() > 3 {
		time.Sleep(time.Millisecond)
	}
	waits(ctx, "POST", "/v1/leases/a", `{"wait": 60}`, "ci")
}

// busy returns how many wait for a name.
func (s *site) busy(t *testing.T) int { t.Helper(); return s.srv.Waiting() }

// late is a clock whose wall clock is behind: what it allows 30 s from now is allowed for a moment.
type late struct{ clock.Clock }

func (l late) Wall() time.Time { return l.Clock.Wall().Add(50*time.Millisecond - 30*time.Second) }

// A client that sends half a request is told so, and its connection is closed.
func TestSlowBody(t *testing.T) {
	s := newSite(t, server.Options{Clock: late{clock.System()}})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /v1/leases/a HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(text), `"code":"too_slow"`) {
		t.Errorf("%d %s %v", resp.StatusCode, text, err)
	}
	_ = resp.Body.Close()
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection: %v", err)
	}
}

func TestDrain(t *testing.T) {
	s := newSite(t, server.Options{})
	want(t, s.ask(t, "GET", "/readyz", "", nil), http.StatusOK)
	s.srv.Drain()
	want(t, s.ask(t, "GET", "/readyz", "", nil), http.StatusServiceUnavailable)
	want(t, s.ask(t, "GET", "/healthz", "", nil), http.StatusOK)
	g := s.acquired(t, "a", `{"ttl": 60}`) // it goes on serving
	waited := make(chan answer, 1)
	go func() { waited <- s.ask(t, "POST", "/v1/leases/a", `{"wait": 60}`, nil) }()
	for s.busy(t) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := s.srv.Close(); err != nil {
		t.Fatal(err)
	}
	for _, got := range []answer{<-waited, s.ask(t, "POST", "/v1/leases/b", "", nil), s.ask(t, "PUT", "/v1/leases/a", "", nil, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret)} {
		if want(t, got, http.StatusServiceUnavailable); got.header.Get("Retry-After") == "" {
			t.Errorf("%s: it doesn't say when to come again", got.asked)
		}
	}
	var kept api.Lease
	if want(t, s.ask(t, "GET", "/v1/leases/a", "", &kept), http.StatusOK); kept.Holder != g.Holder || kept.Token != g.Token {
		t.Errorf("what was held is now %+v", kept)
	}
}
