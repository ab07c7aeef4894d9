package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server that listens.
type site struct {
	*httptest.Server
	srv *server.Server
	db  *memory.DB
}

func newSite(t testing.TB, opts server.Options) *site {
	t.Helper()
	return newSiteOn(t, opts, func(st store.Store) store.Store { return st })
}

// newSiteOn is newSite with something put between the server and its store.
func newSiteOn(t testing.TB, opts server.Options, between func(store.Store) store.Store) *site {
	t.Helper()
	db := memory.NewDB(memory.Options{})
	st := between(db.Open())
	srv, err := server.New(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		_ = srv.Close()
		hs.Close()
		_ = st.Close()
	})
	return &site{Server: hs, srv: srv, db: db}
}

// answer is what came back.
type answer struct {
	asked  string
	status int
	header http.Header
}

// ask sends a request and reads the JSON of the answer into v. header has pairs.
func (s *site) ask(t *testing.T, method, path, body string, v any, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if v != nil && len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			t.Fatalf("%s %s: %d %s: %v", method, path, resp.StatusCode, text, err)
		}
	}
	return answer{method + " " + path, resp.StatusCode, resp.Header}
}

// want fails unless the answer has that status.
func want(t *testing.T, got answer, status int) {
	t.Helper()
	if got.status != status {
		t.Fatalf("%s: %d, want %d", got.asked, got.status, status)
	}
}

func (s *site) acquired(t *testing.T, name, body string) api.Grant {
	t.Helper()
	var g api.Grant
	want(t, s.ask(t, "POST", "/v1/leases/"+name, body, &g), http.StatusCreated)
	return g
}

func TestTerm(t *testing.T) {
	s := newSite(t, server.Options{})
	begun := time.Now()
	g := s.acquired(t, "billing%2Feu", `{"holder": "ci-42", "ttl": "30s", "info": {"op": "close the books"}}`)
	took := time.Since(begun) + time.Millisecond // what it takes off
	if g.Name != "billing/eu" || !strings.HasPrefix(g.Holder, "ci-42/") || g.Token == 0 || g.State != api.StateHeld ||
		time.Duration(*g.ValidFor) > 24*time.Second || time.Duration(*g.ValidFor) < 24*time.Second-took || time.Duration(*g.RenewEvery) != 10*time.Second {
		t.Fatalf("%+v", g)
	}
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/billing%2Feu", `{"holder": "ci-43"}`, &p), http.StatusConflict)
	if p.Code != api.CodeHeld || p.Holder != g.Holder || p.Token != g.Token || p.ExpiresIn == nil {
		t.Errorf("%+v", p)
	}
	var again api.Grant
	resp := s.ask(t, "PUT", "/v1/leases/billing%2Feu", "", &again, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret)
	want(t, resp, http.StatusOK)
	if again.Token != g.Token || resp.header.Get("Leasehold-Token") != g.Token.String() {
		t.Errorf("renewed: %+v", again)
	}
	var v api.Verification
	want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+g.Sequencer+`"}`, &v), http.StatusOK)
	if !v.Current {
		t.Errorf("%+v", v)
	}
	want(t, s.ask(t, "DELETE", "/v1/leases/billing%2Feu?holder="+g.Holder+"&token="+g.Token.String(), "", nil, "Leasehold-Secret", g.Secret), http.StatusNoContent)
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/billing%2Feu", "", &l), http.StatusOK)
	if l.State != api.StateFree || l.Token != g.Token {
		t.Errorf("%+v", l)
	}
	want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+g.Sequencer+`"}`, &v), http.StatusOK)
	if v.Current || v.Now == nil || v.Reason == "" {
		t.Errorf("%+v", v)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		want(t, s.ask(t, method, "/v1/leases/billing%2Feu", "", &p, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret), http.StatusConflict)
		if p.Code != api.CodeNotCurrent {
			t.Errorf("%s: %+v", method, p)
		}
	}
}

// Who waits is granted the name when it is released, and whoever hangs up is forgotten.
func TestWait(t *testing.T) {
	s := newSite(t, server.Options{})
	first := s.acquired(t, "job", `{"holder": "first"}`)
	ctx, hangUp := context.WithCancel(t.Context())
	gone, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/leases/job", strings.NewReader(`{"holder": "gone", "wait": 60}`))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := s.Client().Do(gone); err == nil {
			_ = resp.Body.Close()
			t.Errorf("the one who has gone got %s", resp.Status)
		}
	}()
	s.waiting(t, "job", 1)
	granted := make(chan api.Grant)
	go func() {
		defer close(granted)
		var g api.Grant
		if resp := s.ask(t, "POST", "/v1/leases/job", `{"holder": "second", "wait": 60}`, &g); resp.status == http.StatusCreated {
			granted <- g
		}
	}()
	s.waiting(t, "job", 2)
	hangUp()
	<-left
	s.waiting(t, "job", 1)
	want(t, s.ask(t, "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", first.Sequencer, "Leasehold-Secret", first.Secret), http.StatusNoContent)
	g := <-granted
	if !strings.HasPrefix(g.Holder, "second/") || g.Token <= first.Token || g.Waited == nil {
		t.Errorf("%+v", g)
	}
	want(t, s.ask(t, "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret), http.StatusNoContent)
}

// waiting blocks until so many wait.
func (s *site) waiting(t *testing.T, name string, n int) {
	t.Helper()
	for {
		var got struct {
			Name    string
			Waiters []api.Waiter
		}
		want(t, s.ask(t, "GET", "/v1/leases/"+name+"/waiters", "", &got), http.StatusOK)
		if len(got.Waiters) == n {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d wait, want %d", len(got.Waiters), n)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	s := newSite(t, server.Options{})
	var first, again api.Grant
	want(t, s.ask(t, "POST", "/v1/leases/job", `{"holder": "a"}`, &first, "Idempotency-Key", "k1"), http.StatusCreated)
	want(t, s.ask(t, "POST", "/v1/leases/job", `{"holder": "a"}`, &again, "Idempotency-Key", "k1"), http.StatusCreated)
	if again.Token != first.Token || again.Holder != first.Holder || first.Secret == "" || again.Secret != first.Secret {
		t.Errorf("sent again: %+v, first %+v", again, first)
	}
	want(t, s.ask(t, "POST", "/v1/leases/job", `{"holder": "a"}`, nil, "Idempotency-Key", "k2"), http.StatusConflict)
}

func TestSession(t *testing.T) {
	s := newSite(t, server.Options{})
	var ses api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", `{"holder": "worker"}`, &ses), http.StatusCreated)
	path := "/v1/sessions/" + strings.ReplaceAll(ses.Session, "/", "%2F")
	secret := ses.Secret
	var a api.Grant
	want(t, s.ask(t, "POST", "/v1/leases/shard-1", `{"session": "`+ses.Session+`"}`, &a, "Leasehold-Secret", secret), http.StatusCreated)
	if a.Holder != ses.Holder || a.ValidFor != nil {
		t.Errorf("%+v", a)
	}
	want(t, s.ask(t, "POST", "/v1/leases/shard-1/break", `{"token": `+a.Token.String()+`, "note": "stuck"}`, nil), http.StatusOK)
	want(t, s.ask(t, "PUT", path, "", &ses, "Leasehold-Secret", secret), http.StatusOK)
	if ses.Broken["shard-1"] != a.Token {
		t.Errorf("the session is told %+v", ses)
	}
	want(t, s.ask(t, "DELETE", path, "", nil, "Leasehold-Secret", secret), http.StatusNoContent)
	want(t, s.ask(t, "PUT", path, "", nil, "Leasehold-Secret", secret), http.StatusConflict)
	want(t, s.ask(t, "POST", "/v1/leases/shard-2", `{"session": "`+ses.Session+`"}`, nil), http.StatusConflict)
}

// known is a caller who may look, and take names of its own.
type known string

func (k known) Name() string { return string(k) }

func (k known) May(action server.Action, name string) bool {
	return action == server.Read || k != "" && action == server.Acquire && (name == "" || strings.HasPrefix(name, string(k)+"-"))
}

// A session is its opener's: its id is seen by whoever may look at what it keeps.
func TestSessionIsItsOpeners(t *testing.T) {
	s := newSite(t, server.Options{Authenticate: func(r *http.Request) (server.Caller, error) {
		return known(r.Header.Get("Authorization")), nil
	}})
	var ses api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", `{"info": {"caller": "b"}}`, &ses, "Authorization", "a"), http.StatusCreated)
	path := "/v1/sessions/" + strings.ReplaceAll(ses.Session, "/", "%2F")
	for _, other := range []string{"b", ""} {
		want(t, s.ask(t, "POST", "/v1/leases/b-1", `{"session": "`+ses.Session+`"}`, nil, "Authorization", other, "Leasehold-Secret", ses.Secret), http.StatusForbidden)
		want(t, s.ask(t, "PUT", path, "", nil, "Authorization", other, "Leasehold-Secret", ses.Secret), http.StatusForbidden)
		want(t, s.ask(t, "DELETE", path, "", nil, "Authorization", other, "Leasehold-Secret", ses.Secret), http.StatusForbidden)
	}
	want(t, s.ask(t, "POST", "/v1/sessions", "", nil), http.StatusForbidden)
	want(t, s.ask(t, "POST", "/v1/leases/a-1", `{"session": "`+ses.Session+`"}`, nil, "Authorization", "a", "Leasehold-Secret", ses.Secret), http.StatusCreated)
	want(t, s.ask(t, "PUT", path, "", nil, "Authorization", "a", "Leasehold-Secret", ses.Secret), http.StatusOK)
	want(t, s.ask(t, "DELETE", path, "", nil, "Authorization", "a", "Leasehold-Secret", ses.Secret), http.StatusNoContent)
}

func TestListAndHistory(t *testing.T) {
	s := newSite(t, server.Options{})
	for _, name := range []string{"b", "a2", "a1", "a3"} {
		s.acquired(t, name, "")
	}
	var page struct {
		Leases []api.Lease
		Next   string
	}
	var names []string
	for after := ""; ; after = page.Next {
		page.Next = ""
		want(t, s.ask(t, "GET", "/v1/leases?prefix=a&limit=2&after="+after, "", &page), http.StatusOK)
		for _, l := range page.Leases {
			names = append(names, l.Name)
		}
		if page.Next == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "a1 a2 a3" {
		t.Errorf("listed %q", got)
	}
	var h struct {
		Name  string
		Terms []api.Term
	}
	want(t, s.ask(t, "GET", "/v1/leases/b/history", "", &h), http.StatusOK)
	if len(h.Terms) != 1 || !h.Terms[0].Until.IsZero() {
		t.Errorf("%+v", h)
	}
}

// Bad requests get a problem that names the field, the value and what it should be.
func TestBadRequests(t *testing.T) {
	s := newSite(t, server.Options{MaxBody: 1000})
	for _, c := range []struct {
		method, path, body string
		status             int
		code               api.Code
		field              string
	}{
		{"POST", "/v1/leases/job", `{"ttl": 0.001}`, 400, api.CodeInvalid, "ttl"},
		{"POST", "/v1/leases/job", `{"wait": "2h"}`, 400, api.CodeInvalid, "wait"},
		{"POST", "/v1/leases/job", `{"tll": 5}`, 400, api.CodeInvalid, "tll"},
		{"POST", "/v1/leases/job", `{} {}`, 400, api.CodeInvalid, ""},
		{"POST", "/v1/leases/job", `[]`, 400, api.CodeInvalid, ""},
		{"POST", "/v1/leases/job", `{"holder": "` + strings.Repeat("x", 2000) + `"}`, 413, api.CodeTooLarge, ""},
		{"POST", "/v1/leases/job", `{"holder": "` + strings.Repeat("x", 300) + `"}`, 400, api.CodeInvalid, "holder"},
		{"POST", "/v1/leases/.session%2Fx", `{}`, 400, api.CodeInvalid, "name"},
		{"GET", "/v1/leases/.session%2Fx", ``, 400, api.CodeInvalid, "name"},
		{"POST", "/v1/leases/job", `{"session": "x"}`, 400, api.CodeInvalid, "session"},
		{"PUT", "/v1/leases/job", ``, 400, api.CodeInvalid, "holder"},
		{"PUT", "/v1/leases/job?holder=a&token=x", ``, 400, api.CodeInvalid, "token"},
		{"PUT", "/v1/leases/job?holder=a&token=5", ``, 409, api.CodeNotCurrent, ""},
		{"POST", "/v1/leases/job/break", `{}`, 400, api.CodeInvalid, "token"},
		{"POST", "/v1/verify", `{"sequencer": "x"}`, 400, api.CodeInvalid, "Leasehold-Sequencer"},
		{"GET", "/v1/leases?limit=0", ``, 400, api.CodeInvalid, "limit"},
		{"GET", "/v1/records/job?wait=x", ``, 400, api.CodeInvalid, "wait"},
		{"GET", "/v1/records/job", ``, 404, api.CodeNotFound, ""},
		{"PUT", "/v1/records/job", `{"owner": 5}`, 400, api.CodeInvalid, ""},
		{"GET", "/v1/nothing", ``, 404, api.CodeNoRoute, ""},
		{"PATCH", "/v1/leases/job", ``, 405, api.CodeMethod, ""},
	} {
		var p api.Problem
		resp := s.ask(t, c.method, c.path, c.body, &p)
		if resp.status != c.status || p.Code != c.code || p.Field != c.field || p.Detail == "" || resp.header.Get("Content-Type") != api.ContentProblem {
			t.Errorf("%s %s %.60s: %d %s: %+v", c.method, c.path, c.body, resp.status, resp.header.Get("Content-Type"), p)
		}
	}
}

func TestHealth(t *testing.T) {
	s := newSite(t, server.Options{})
	want(t, s.ask(t, "GET", "/healthz", "", nil), http.StatusOK)
	want(t, s.ask(t, "GET", "/readyz", "", nil), http.StatusOK)
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	want(t, s.ask(t, "GET", "/healthz", "", nil), http.StatusOK)
	want(t, s.ask(t, "GET", "/readyz", "", nil), http.StatusServiceUnavailable)
}

// A server that closes answers who waits.
func TestClose(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "job", "")
	done := make(chan int)
	go func() { done <- s.ask(t, "POST", "/v1/leases/job", `{"wait": 60}`, nil).status }()
	s.waiting(t, "job", 1)
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	if got := <-done; got != http.StatusServiceUnavailable {
		t.Errorf("who waited got %d", got)
	}
}

// RDLM's protocol is spoken at the same port: its locks are leases.
func TestRDLM(t *testing.T) {
	s := newSite(t, server.Options{RDLM: &rdlm.Options{}})
	want(t, s.ask(t, "POST", "/locks/job", `{"title": "me", "wait": 0, "lifetime": 60}`, nil), http.StatusCreated)
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/job", "", &p), http.StatusConflict)
	if !strings.HasPrefix(p.Holder, "rdlm/") {
		t.Errorf("%+v", p)
	}
	without := newSite(t, server.Options{})
	want(t, without.ask(t, "POST", "/locks/job", `{}`, nil), http.StatusNotFound)
}
