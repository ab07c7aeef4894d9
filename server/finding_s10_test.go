package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// member is a caller, named by its bearer token, who may do some things to every name.
type member struct {
	name string
	may  []server.Action
}

func (m member) Name() string { return m.name }

func (m member) May(action server.Action, _ string) bool { return slices.Contains(m.may, action) }

// ledger remembers what a server tells of its requests.
type ledger struct {
	mu     sync.Mutex
	events []server.Event
}

func (l *ledger) note(e server.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// refused returns the outcome that was told last of an operation of a caller.
func (l *ledger) outcome(caller, op string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.events) {
		if e.Caller == caller && e.Op == op {
			return e.Outcome
		}
	}
	return ""
}

// club is a server whose callers say their names: "reader" may look, all others may take names, too.
func club(t *testing.T, told *ledger) *site {
	t.Helper()
	opts := server.Options{RDLM: &rdlm.Options{}, Authenticate: func(r *http.Request) (server.Caller, error) {
		name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		m := member{name, []server.Action{server.Read}}
		if name != "reader" {
			m.may = append(m.may, server.Acquire, server.Assign)
		}
		return m, nil
	}}
	if told != nil {
		opts.OnEvent = told.note
	}
	return newSite(t, opts)
}

// as asks as a caller; header has pairs.
func (s *site) as(t *testing.T, who, method, path, body string, v any, header ...string) answer {
	t.Helper()
	return s.ask(t, method, path, body, v, append([]string{"Authorization", "Bearer " + who}, header...)...)
}

// again is another server on the store of s.
func (s *site) again(t *testing.T, opts server.Options) *site {
	t.Helper()
	st := s.db.Open()
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
	return &site{Server: hs, srv: srv, db: s.db}
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// What a GET says of a term lets nobody renew or release it.
func TestFinding_S10_AnothersLease(t *testing.T) {
	var told ledger
	s := club(t, &told)
	var g api.Grant
	want(t, s.as(t, "alice", "POST", "/v1/leases/job", `{"ttl": 3600}`, &g), http.StatusCreated)
	if len(g.Secret) < 26 {
		t.Fatalf("a secret of %d characters", len(g.Secret))
	}
	var seen api.Lease
	want(t, s.as(t, "mallory", "GET", "/v1/leases/job", "", &seen), http.StatusOK)
	term := "?holder=" + url.QueryEscape(seen.Holder) + "&token=" + seen.Token.String()
	for _, header := range [][]string{nil, {api.HeaderSecret, ""}, {api.HeaderSecret, seen.Holder}, {api.HeaderSecret, g.Secret[:25]}, {api.HeaderSecret, g.Secret + "x"}} {
		for _, who := range []string{"mallory", "alice"} {
			var p api.Problem
			want(t, s.as(t, who, "PUT", "/v1/leases/job"+term, `{"ttl": 0.01}`, &p, header...), http.StatusForbidden)
			if p.Code != api.CodeSecret || p.Field != api.HeaderSecret {
				t.Errorf("%+v", p)
			}
			want(t, s.as(t, who, "DELETE", "/v1/leases/job"+term, "", &p, header...), http.StatusForbidden)
			if told.outcome(who, "renew") != "wrong_secret" || told.outcome(who, "release") != "wrong_secret" {
				t.Errorf("the refusals are not told: %+v", told.events)
			}
		}
	}
	want(t, s.as(t, "alice", "GET", "/v1/leases/job", "", &seen), http.StatusOK)
	if seen.State != api.StateHeld || seen.TTL == nil || *seen.TTL != *g.TTL {
		t.Errorf("%+v", seen)
	}
	// Any server on the store knows the secret, and tells it to nobody.
	other := s.again(t, server.Options{})
	var renewed api.Grant
	want(t, other.ask(t, "PUT", "/v1/leases/job", "", &renewed, "Leasehold-Sequencer", g.Sequencer, api.HeaderSecret, g.Secret), http.StatusOK)
	if renewed.Secret != "" {
		t.Error("a renewal tells the secret")
	}
	want(t, s.as(t, "alice", "DELETE", "/v1/leases/job"+term, "", nil, api.HeaderSecret, g.Secret), http.StatusNoContent)
}

// A secret is in no other answer, and in nothing that a server tells of its requests.
func TestFinding_S10_SecretsAreToldOnce(t *testing.T) {
	var told ledger
	s := club(t, &told)
	var g api.Grant
	want(t, s.as(t, "alice", "POST", "/v1/leases/job", `{"ttl": 60, "info": {"why": "a test"}}`, &g, "Idempotency-Key", "a-key"), http.StatusCreated)
	var ses api.Session
	want(t, s.as(t, "alice", "POST", "/v1/sessions", `{"ttl": 60}`, &ses), http.StatusCreated)
	want(t, s.as(t, "alice", "POST", "/v1/leases/kept", `{"session": "`+ses.Session+`"}`, nil, api.HeaderSecret, ses.Secret), http.StatusCreated)
	done := make(chan answer, 1)
	go func() {
		done <- s.as(t, "bob", "POST", "/v1/leases/job", `{"wait": 60}`, nil, "Idempotency-Key", "b-key")
	}()
	for s.srv.Waiting() == 0 {
		s.as(t, "bob", "GET", "/v1/leases/job/waiters", "", nil)
	}
	reader := s.again(t, server.Options{})
	var text strings.Builder
	for _, path := range []string{
		"/v1/leases/job", "/v1/leases/kept", "/v1/leases", "/v1/leases/job/history", "/v1/leases/job/waiters", "/v1/records", "/v1/records/job",
		"/v1/records/" + url.PathEscape(ses.Session), "/metrics",
	} {
		for _, from := range []*site{s, reader} {
			text.WriteString(from.text(t, path))
		}
	}
	told.mu.Lock()
	for _, e := range told.events {
		text.WriteString(e.Holder + e.Note + e.Name)
	}
	told.mu.Unlock()
	for _, secret := range []string{g.Secret, ses.Secret, "a-key", "b-key"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	for _, hidden := range []string{".secret", ".request"} {
		if strings.Contains(s.text(t, "/v1/leases")+s.text(t, "/v1/leases/job")+s.text(t, "/v1/leases/job/waiters"), hidden) {
			t.Errorf("%s is shown", hidden)
		}
	}
	want(t, s.as(t, "alice", "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", g.Sequencer, api.HeaderSecret, g.Secret), http.StatusNoContent)
	want(t, <-done, http.StatusCreated)
}

func (s *site) text(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
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
	return string(text)
}

// Who was waiting when the name was released has a secret of its own, and the one before is worth nothing then.
func TestFinding_S10_AnHeirsSecret(t *testing.T) {
	s := club(t, nil)
	var first, second api.Grant
	want(t, s.as(t, "alice", "POST", "/v1/leases/job", `{"ttl": 60}`, &first), http.StatusCreated)
	done := make(chan answer, 1)
	go func() { done <- s.as(t, "bob", "POST", "/v1/leases/job", `{"wait": 60, "ttl": 60}`, &second) }()
	for s.srv.Waiting() == 0 {
		s.as(t, "bob", "GET", "/v1/leases/job", "", nil)
	}
	want(t, s.as(t, "alice", "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", first.Sequencer, api.HeaderSecret, first.Secret), http.StatusNoContent)
	want(t, <-done, http.StatusCreated)
	if second.Secret == first.Secret || second.Secret == "" {
		t.Fatalf("%+v", second)
	}
	want(t, s.as(t, "alice", "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", second.Sequencer, api.HeaderSecret, first.Secret), http.StatusForbidden)
	want(t, s.as(t, "bob", "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", second.Sequencer, api.HeaderSecret, second.Secret), http.StatusNoContent)
}

// A session is used, renewed and closed by who has its secret.
func TestFinding_S10_AnothersSession(t *testing.T) {
	s := newSite(t, server.Options{})
	var ses api.Session
	want(t, s.ask(t, "POST", "/v1/sessions", `{"ttl": 60}`, &ses), http.StatusCreated)
	var g api.Grant
	want(t, s.ask(t, "POST", "/v1/leases/job", `{"session": "`+ses.Session+`"}`, &g, api.HeaderSecret, ses.Secret), http.StatusCreated)
	for _, header := range [][]string{nil, {api.HeaderSecret, g.Secret}, {api.HeaderSecret, "x"}} {
		want(t, s.ask(t, "PUT", sessionPath(ses.Session), `{"ttl": 0.01}`, nil, header...), http.StatusForbidden)
		want(t, s.ask(t, "DELETE", sessionPath(ses.Session), "", nil, header...), http.StatusForbidden)
		want(t, s.ask(t, "POST", "/v1/leases/more", `{"session": "`+ses.Session+`"}`, nil, header...), http.StatusForbidden)
		want(t, s.ask(t, "POST", "/v1/identities/pool", `{"range": "1-9", "session": "`+ses.Session+`"}`, nil, header...), http.StatusForbidden)
	}
	other := s.again(t, server.Options{})
	want(t, other.ask(t, "PUT", sessionPath(ses.Session), "", nil, api.HeaderSecret, ses.Secret), http.StatusOK)
	want(t, s.ask(t, "DELETE", sessionPath(ses.Session), "", nil, api.HeaderSecret, ses.Secret), http.StatusNoContent)
}

// Who may only look opens no session.
func TestFinding_S10_AReaderOpensNoSession(t *testing.T) {
	var told ledger
	s := club(t, &told)
	want(t, s.as(t, "reader", "POST", "/v1/sessions", `{"ttl": 60}`, nil), http.StatusForbidden)
	if told.outcome("reader", "open session") != "forbidden" {
		t.Errorf("%+v", told.events)
	}
	want(t, s.as(t, "alice", "POST", "/v1/sessions", `{"ttl": 60}`, nil), http.StatusCreated)
}

// An idempotency key is its caller's: nobody takes another's grant by it, and what a request writes into info is not believed.
func TestFinding_S10_AnothersIdempotencyKey(t *testing.T) {
	s := club(t, nil)
	var g, again api.Grant
	want(t, s.as(t, "alice", "POST", "/v1/leases/job", `{"ttl": 60}`, &g, "Idempotency-Key", "k1"), http.StatusCreated)
	want(t, s.as(t, "bob", "POST", "/v1/leases/job", `{}`, nil, "Idempotency-Key", "k1"), http.StatusConflict)
	want(t, s.as(t, "alice", "POST", "/v1/leases/job", `{"ttl": 60}`, &again, "Idempotency-Key", "k1"), http.StatusCreated)
	if again.Token != g.Token || again.Secret != g.Secret {
		t.Errorf("sent again: %+v, first %+v", again, g)
	}
	// Sent again to another server on the store, it is told the same secret; and with the key of another request none.
	other := s.again(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return member{"alice", server.Actions()}, nil }})
	want(t, other.ask(t, "POST", "/v1/leases/job", `{"ttl": 60}`, &again, "Idempotency-Key", "k1"), http.StatusCreated)
	if again.Token != g.Token || again.Secret != g.Secret {
		t.Errorf("sent to another server: %+v, first %+v", again, g)
	}
	want(t, other.ask(t, "POST", "/v1/leases/job", `{"ttl": 60}`, nil, "Idempotency-Key", "k2"), http.StatusConflict)

	// What mallory writes into info makes nobody believe that the term is alice's.
	rec, err := s.db.Open().Get(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []string{`{"request": "alice/k9"}`, `{".request": "` + rec.Info[".request"] + `"}`, `{".secret": "` + rec.Info[".secret"] + `"}`} {
		status := s.as(t, "mallory", "POST", "/v1/leases/forged", `{"ttl": 60, "info": `+info+`}`, nil).status
		if status != http.StatusBadRequest && strings.HasPrefix(info, `{".`) {
			t.Errorf("%s: %d", info, status)
		}
		for _, path := range []string{"/v1/sessions", "/v1/identities/pool"} {
			if got := s.as(t, "mallory", "POST", path, `{"info": `+info+`}`, nil); strings.HasPrefix(info, `{".`) && got.status != http.StatusBadRequest {
				t.Errorf("%s %s: %d", path, info, got.status)
			}
		}
	}
	want(t, s.as(t, "alice", "POST", "/v1/leases/forged", `{}`, nil, "Idempotency-Key", "k9"), http.StatusConflict)
	want(t, s.as(t, "alice", "POST", "/v1/leases/forged", `{}`, nil, "Idempotency-Key", "k1"), http.StatusConflict)
}

// A term that was granted without a secret, by an earlier version or a program that has the store, isn't a server's to renew or release.
func TestFinding_S10_ATermWithoutASecret(t *testing.T) {
	s := newSite(t, server.Options{})
	rec := store.Record{Key: "job", Owner: "old/1", Token: 7, TTL: 60e9, Nonce: "n", Info: map[string]string{"request": "/k1"}}
	if _, err := s.db.Open().Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	var p api.Problem
	for _, method := range []string{"PUT", "DELETE"} {
		want(t, s.ask(t, method, "/v1/leases/job?holder=old%2F1&token=7", "", &p, api.HeaderSecret, "x"), http.StatusForbidden)
		if p.Code != api.CodeSecret || !strings.Contains(p.Detail, "earlier version") {
			t.Errorf("%+v", p)
		}
	}
	want(t, s.ask(t, "POST", "/v1/leases/job", `{}`, nil, "Idempotency-Key", "k1"), http.StatusConflict)
	want(t, s.ask(t, "POST", "/v1/leases/job/break", `{"token": 7}`, nil), http.StatusOK)
}

// RDLM's uid is the secret of its lock: nobody else is shown it, and what is shown in its place opens nothing.
func TestFinding_S10_RDLMsUIDs(t *testing.T) {
	var told ledger
	s := newSite(t, server.Options{RDLM: &rdlm.Options{}, OnEvent: told.note})
	a := s.ask(t, "POST", "/locks/job", `{"title": "me", "wait": 0, "lifetime": 60}`, nil)
	want(t, a, http.StatusCreated)
	uid := a.header.Get("Location")[len(a.header.Get("Location"))-32:]
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/job", "", &l), http.StatusOK)
	shown := s.text(t, "/v1/leases/job") + s.text(t, "/v1/leases") + s.text(t, "/v1/records/job") + s.text(t, "/v1/leases/job/history")
	for _, e := range told.events {
		shown += e.Holder + e.Name + e.Note
	}
	if strings.Contains(shown, uid) {
		t.Errorf("the uid is shown: %s", shown)
	}
	public := strings.TrimPrefix(l.Holder, "rdlm/")
	want(t, s.ask(t, "PUT", "/locks/job/"+public, "", nil), http.StatusNotFound)
	want(t, s.ask(t, "DELETE", "/locks/job/"+public, "", nil), http.StatusNotFound)
	want(t, s.ask(t, "POST", "/locks/job", `{"title": "x", "wait": 0, "lifetime": 60, "uid": "`+public+`"}`, nil), http.StatusRequestTimeout)
	want(t, s.ask(t, "DELETE", "/v1/leases/job?holder="+url.QueryEscape(l.Holder)+"&token="+l.Token.String(), "", nil), http.StatusForbidden)
	want(t, s.ask(t, "DELETE", "/locks/job/"+uid, "", nil), http.StatusNoContent)
}
