package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// stage is a server without a network, on virtual time, and what it told of each request.
type stage struct {
	srv  *server.Server
	told []server.Event
}

// onStage runs f in a bubble. between, if it isn't nil, is put between the server and its store.
func onStage(t *testing.T, between func(store.Store) store.Store, f func(*testing.T, *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		defer func() { _ = st.Close() }()
		seen := store.Store(st)
		if between != nil {
			seen = between(st)
		}
		s := &stage{}
		srv, err := server.New(seen, server.Options{
			RDLM: &rdlm.Options{}, OnEvent: func(e server.Event) { s.told = append(s.told, e) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		s.srv = srv
		f(t, s)
	})
}

func (s *stage) ask(ctx context.Context, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, r)
	return w
}

// outcome is that of the last request.
func (s *stage) outcome() string { return s.told[len(s.told)-1].Outcome }

// A client that hangs up is no store that fails, whatever was asked for.
func TestClientGone(t *testing.T) {
	onStage(t, nil, func(t *testing.T, s *stage) {
		s.ask(t.Context(), "POST", "/v1/leases/job", `{"ttl": "1h"}`)
		held := s.told[0]
		term := "?holder=" + held.Holder + "&token=" + held.Token.String()
		s.ask(t.Context(), "POST", "/v1/sessions", `{"ttl": "1h"}`)
		session := "/v1/sessions/" + strings.ReplaceAll(s.told[1].Name, "/", "%2F")
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/v1/leases/free", ``},
			{"POST", "/v1/leases/job", `{"wait": "1m"}`},
			{"PUT", "/v1/leases/job" + term, ``},
			{"GET", "/v1/leases/job", ``},
			{"GET", "/v1/leases/job/history", ``},
			{"POST", "/v1/leases/job/break", `{"token": ` + held.Token.String() + `}`},
			{"POST", "/v1/leases/job/handoff", `{"any": true}`},
			{"POST", "/v1/leases/job/pause", `{"reason": "drill"}`},
			{"POST", "/v1/leases/job/resume", ``},
			{"GET", "/v1/leases", ``},
			{"POST", "/v1/sessions", ``},
			{"PUT", session, ``},
			{"POST", "/v1/identities/pool", `{"range": "1-9"}`},
			{"GET", "/v1/identities/pool", ``},
			{"POST", "/v1/verify", `{"sequencer": "v1;7;job;x"}`},
			{"GET", "/v1/records", ``},
			{"GET", "/v1/records/job", ``},
			{"GET", "/v1/records/job?wait=60", ``},
			{"POST", "/locks/job", `{"title": "a test", "lifetime": 60, "wait": 60}`},
			{"GET", "/locks/job/" + strings.Repeat("0", 32), ``},
		} {
			w := s.ask(gone, c.method, c.path, c.body)
			if s.outcome() != string(api.CodeGone) {
				t.Errorf("%s %s: told of %+v", c.method, c.path, s.told[len(s.told)-1])
			}
			if !strings.HasPrefix(c.path, "/locks") && (w.Code != api.CodeGone.Status() || w.Header().Get("Retry-After") != "") {
				t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
			}
		}
		if w := s.ask(t.Context(), "GET", "/v1/leases/free", ``); !strings.Contains(w.Body.String(), `"state":"free"`) {
			t.Errorf("of somebody who had gone: %s", w.Body)
		}
	})
}

// To let go is carried out, though the client has gone: before its turn, too.
func TestFinding_O4_ToLetGoNeedsNoClient(t *testing.T) {
	onStage(t, nil, func(t *testing.T, s *stage) {
		ask := func(ctx context.Context, v any, method, path, body string, header ...string) int {
			t.Helper()
			r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
			for i := 0; i+1 < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			w := httptest.NewRecorder()
			s.srv.ServeHTTP(w, r)
			if v != nil {
				if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
					t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
				}
			}
			return w.Code
		}
		var g api.Grant
		var open api.Session
		var id api.Assigned
		ask(t.Context(), &g, "POST", "/v1/leases/job", `{"ttl": "1h"}`)
		ask(t.Context(), &open, "POST", "/v1/sessions", `{"ttl": "1h"}`)
		ask(t.Context(), &id, "POST", "/v1/identities/pool", `{"range": "1-9", "as": "web1"}`)
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for path, header := range map[string][]string{
			"/v1/leases/job": {"Leasehold-Sequencer", g.Sequencer, api.HeaderSecret, g.Secret},
			"/v1/sessions/" + strings.ReplaceAll(open.Session, "/", "%2F"): {api.HeaderSecret, open.Secret},
			"/v1/identities/pool/" + id.Value + "?as=web1":                 nil,
		} {
			if code := ask(gone, nil, "DELETE", path, "", header...); code != http.StatusNoContent || s.outcome() != "ok" {
				t.Errorf("DELETE %s: %d, told of %+v", path, code, s.told[len(s.told)-1])
			}
		}
		var l api.Lease
		if ask(t.Context(), &l, "GET", "/v1/leases/job", ""); l.State != api.StateFree {
			t.Errorf("%+v", l)
		}
	})
}

// Whoever hangs up while it waits is told of as that, by whatever protocol; and a server that ends is told of as that.
func TestClientGoneWhileItWaits(t *testing.T) {
	for what, path := range map[string]string{"v1": "/v1/leases/job", "RDLM": "/locks/job"} {
		for _, closing := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				onStage(t, nil, func(t *testing.T, s *stage) {
					s.ask(t.Context(), "POST", "/v1/leases/job", `{"ttl": "1h"}`)
					ctx, hangUp := context.WithCancel(t.Context())
					defer hangUp()
					body, over := `{"wait": "1m"}`, make(chan struct{})
					if what == "RDLM" {
						body = `{"title": "a test", "lifetime": 60, "wait": 60}`
					}
					go func() {
						defer close(over)
						s.ask(ctx, "POST", path, body)
					}()
					synctest.Wait()
					expected := api.CodeGone
					if closing {
						expected = api.CodeClosing
						_ = s.srv.Close()
					}
					hangUp()
					<-over
					if s.outcome() != string(expected) {
						t.Errorf("closing %v: told of %+v", closing, s.told[1])
					}
				})
			})
		}
	}
}

// An order that is given stands, though whoever gave it doesn't wait until it is carried out: it is told of as given.
func TestClientGoneAfterItsOrder(t *testing.T) {
	onStage(t, nil, func(t *testing.T, s *stage) {
		s.ask(t.Context(), "POST", "/v1/leases/job", `{"ttl": "1h"}`)
		ctx, hangUp := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.ask(ctx, "POST", "/v1/leases/job/pause", `{"reason": "drill", "wait": "1m"}`)
		}()
		synctest.Wait()
		hangUp()
		<-over
		if s.outcome() != "ok" {
			t.Errorf("told of %+v", s.told[1])
		}
		if w := s.ask(t.Context(), "GET", "/v1/leases/job", ``); !strings.Contains(w.Body.String(), `"reason":"drill"`) {
			t.Errorf("%s", w.Body)
		}
	})
}

// failing is a store that does not answer.
type failing struct {
	store.Store
	err    error
	before func()
}

func (f failing) Get(context.Context, string) (store.Record, error) {
	f.before()
	return store.Record{}, f.err
}

// A store that fails, or does not say what came of a write, is told of as that, though the client hangs up meanwhile. One that gives up
// by itself has no client that hung up; and what a server that ends breaks off is told of as that.
func TestStoreFailsWhileItsClientGoes(t *testing.T) {
	for _, c := range []struct {
		err     error
		gone    bool
		closing bool
		code    api.Code
	}{
		{errors.New("connection refused"), true, false, api.CodeUnavailable},
		{driver.Unknown("job", context.Canceled), true, false, api.CodeUnknown},
		{context.Canceled, false, false, api.CodeUnavailable},
		{context.Canceled, true, true, api.CodeClosing},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			var hangUp context.CancelFunc
			before := func() {
				if c.gone {
					hangUp()
				}
			}
			onStage(t, func(st store.Store) store.Store { return failing{st, c.err, before} }, func(t *testing.T, s *stage) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				hangUp = cancel
				if c.closing {
					_ = s.srv.Close()
				}
				s.ask(ctx, http.MethodGet, "/v1/leases/job/history", ``)
				if s.outcome() != string(c.code) {
					t.Errorf("told of %+v", s.told[0])
				}
			})
		})
	}
}
