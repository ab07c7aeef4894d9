package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// The store over HTTP is a store like any other, with a network in between that is really cut.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		s := newSite(t, server.Options{})
		network := servers.Proxy(t, s.Listener.Addr().String())
		return storetest.Instance{
			Open: func(ctx context.Context) (store.Store, error) {
				return client.Open(ctx, "http://"+network.Addr, client.Options{})
			},
			Pushes: true, HasAge: true, Volatile: false,
			Cut:  func() error { network.Cut(); return nil },
			Heal: func() error { network.Heal(); return nil },
		}
	})
}

// A lease that is kept over HTTP, and one that the server keeps for a script, exclude each other.
func TestLeaseOverHTTP(t *testing.T) {
	s := newSite(t, server.Options{})
	st, err := client.Open(t.Context(), s.URL+"/", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	m, err := lease.NewManager(st, lease.Options{Fencing: store.FencingLinearizable})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	g := s.acquired(t, "job", "")
	var held *lease.HeldError
	if _, err := m.TryAcquire(t.Context(), "job"); !errors.As(err, &held) || held.Owner != g.Holder {
		t.Fatalf("%v, want it held by %s", err, g.Holder)
	}
	want(t, s.ask(t, "DELETE", "/v1/leases/job", "", nil, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret), http.StatusNoContent)
	l, err := m.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/job", "", &p), http.StatusConflict)
	if p.Holder != m.Owner() || p.Token != l.Token() {
		t.Errorf("%+v", p)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is no answer of a lock server's says nothing about a write; where no connection could be had, nothing was done.
func TestAnswersOfOthers(t *testing.T) {
	s := newSite(t, server.Options{})
	var broken atomic.Pointer[http.HandlerFunc] // a connection that is aborted orders nothing
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := broken.Load(); h != nil {
			(*h)(w, r)
			return
		}
		s.srv.ServeHTTP(w, r)
	}))
	conns := &http.Client{Transport: &http.Transport{}}
	st, err := client.Open(t.Context(), front.URL, client.Options{HTTP: conns})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	rec := store.Record{Key: "job", Owner: "a", Token: 1, TTL: 1e9, Nonce: "n"}
	for what, h := range map[string]http.HandlerFunc{
		"502":            func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) },
		"404 of others":  http.NotFound,
		"200 of others":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>welcome")) },
		"a broken reply": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		broken.Store(&h)
		if _, err := st.Put(t.Context(), rec); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%s: Put: %v, want an unknown outcome", what, err)
		}
		if _, err := st.Get(t.Context(), "job"); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: Get: %v", what, err)
		}
	}
	front.CloseClientConnections()
	front.Close()
	conns.CloseIdleConnections() // one whose end has not been seen yet would take a request
	if _, err := st.Put(t.Context(), rec); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("nobody listens: %v, want that nothing was done", err)
	}
}

func TestOpenSaysWhatToDo(t *testing.T) {
	s := newSite(t, server.Options{Authenticate: func(r *http.Request) (server.Caller, error) {
		if r.Header.Get("Authorization") != "Bearer good" {
			return nil, errors.New("the bearer token is not known")
		}
		return server.Anybody, nil
	}})
	for url, says := range map[string]string{
		"locks.example.com":      "want its URL",
		"ftp://x":                "want its URL",
		s.URL:                    "give the token",
		"http://127.0.0.1:1":     "connection refused",
		s.URL + "/v1/elsewhere/": "nothing at this path",
	} {
		st, err := client.Open(t.Context(), url, client.Options{})
		if err == nil {
			_ = st.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", url, err, says)
		}
	}
	st, err := client.Open(t.Context(), s.URL, client.Options{Token: "good"})
	if err != nil {
		t.Fatal(err)
	}
	_ = st.Close()
}
