package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store/memory"
)

// FuzzAPI sends requests of any kind. Whatever comes, the answer is one of those that are described: no panic, no other status,
// and of an error a problem whose code has that status.
func FuzzAPI(f *testing.F) {
	for _, path := range []string{
		"/v1/leases/a", "/v1/leases/a%2Fb", "/v1/leases/a/break", "/v1/leases/a/handoff", "/v1/leases/a/pause", "/v1/leases/a/resume", "/resources", "/locks/a", "/v1/leases/a/history", "/v1/leases/a/waiters", "/v1/leases?limit=-1",
		"/v1/sessions", "/v1/sessions/.session%2Fx", "/v1/verify", "/v1/whoami", "/v1/login", "/v1/store", "/v1/records", "/v1/records/a", "/v1/leases/%", "//", "/readyz",
	} {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "HEAD", "x"} {
			f.Add(method, path, "v1;1;a;me", "key", `{"holder": "me", "ttl": "1m", "token": 1, "sequencer": "v1;1;a;me", "record": {}}`)
			f.Add(method, path, "", "", `{"reason": "drill", "wait": 1}`)
			f.Add(method, path, "", "", `{"to": "x", "reason": "drill", "token": 1}`)
		}
	}
	f.Add("POST", "/v1/leases/a", "", "", `{"ttl": 1e999, "wait": -1}`)
	f.Add("PUT", "/v1/leases/a?holder=x&token=18446744073709551616", "", "", "\x00")
	f.Fuzz(func(t *testing.T, method, path, sequencer, key, body string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || strings.HasSuffix(u.Path, "/watch") || u.Host != "" {
			return // no request, or a stream
		}
		st := memory.New(memory.Options{})
		defer func() { _ = st.Close() }()
		srv, err := server.New(st, server.Options{MaxWait: time.Millisecond, MaxBody: 4 << 10, RDLM: &rdlm.Options{MaxBody: 4 << 10}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		for range 2 { // the second one meets what the first has left
			r := &http.Request{
				Method: method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "x", RemoteAddr: "127.0.0.1:1",
				Header:        http.Header{fence.Header: {sequencer}, api.HeaderKey: {key}},
				Body:          http.NoBody,
				ContentLength: int64(len(body)),
			}
			if body != "" {
				r.Body = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).Body
			}
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r.WithContext(t.Context()))
			sound(t, w)
		}
	})
}

// sound fails unless an answer is one that a client can understand.
func sound(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	kind := w.Header().Get("Content-Type")
	switch {
	case kind == api.ContentProblem:
		var p api.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Code.Status() != w.Code || !slices.Contains(api.Codes(), p.Code) {
			t.Errorf("%d %s: %v", w.Code, w.Body, err)
		}
		if err := p.Err(); err == nil || w.Code == http.StatusInternalServerError {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	case strings.HasPrefix(kind, "application/json"):
		if !json.Valid(w.Body.Bytes()) || w.Code/100 != 2 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	case w.Code >= http.StatusInternalServerError:
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
