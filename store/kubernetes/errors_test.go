package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/kubernetes/typed/coordination/v1/fake"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestNewRefuses(t *testing.T) {
	client, err := coordination.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for want, try := range map[string]func() (*Store, error){
		`namespace ""`:        func() (*Store, error) { return New(client, Options{}) },
		`namespace "Not/One"`: func() (*Store, error) { return New(client, Options{Namespace: "Not/One"}) },
		"client: want one":    func() (*Store, error) { return New(nil, Options{Namespace: "ns"}) },
		"and not nil or a fake": func() (*Store, error) {
			return New(&fake.FakeCoordinationV1{}, Options{Namespace: "ns"})
		},
	} {
		if s, err := try(); err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want an error with %q", s, err, want)
		}
	}
}

// TestErrorsSayWhatToDo meets what goes wrong when a program is set up, each time for real: a write is never reported as
// unknown, and the error says what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	namespace := newNamespace(t, srv)
	nobody := servers.FreeAddr(t)
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	for _, c := range []struct {
		what, namespace string
		spoil           func(*rest.Config)
		wants           []string
	}{
		{"unreachable", namespace, func(c *rest.Config) { c.Host = "https://" + nobody }, []string{"can't be reached", "address"}},
		{"untrusted", namespace, func(c *rest.Config) { c.CAData, c.CAFile = nil, "" }, []string{"certificate is not trusted", "certificate-authority"}},
		{"another name", namespace, func(c *rest.Config) { c.ServerName = "elsewhere.example" }, []string{"certificate is not trusted", "by a name that is in the certificate"}},
		{"bad token", namespace, func(c *rest.Config) { c.BearerToken = "wrong" }, []string{"credentials", "renew"}},
		{"no rights", namespace, func(c *rest.Config) { c.BearerToken = userToken(t, srv) }, []string{"may not", namespace, "leasehold init kubernetes"}},
		{"no such namespace", "nowhere", func(*rest.Config) {}, []string{"namespace nowhere does not exist", "kubectl create namespace nowhere"}},
		{"another server", namespace, func(c *rest.Config) { c.Host, c.Insecure, c.CAData = other.URL, true, nil }, []string{"is it a Kubernetes API server?"}},
	} {
		cfg := config(t, srv, srv.Addr)
		c.spoil(cfg)
		s := open(t, dial(t, cfg), c.namespace)
		_, putErr := s.Put(t.Context(), held("k", 1))
		_, getErr := s.Get(t.Context(), "k")
		_, waitErr := s.Wait(t.Context(), "k", "x")
		_, listErr := keys(t.Context(), s, "")
		pingErr := s.Ping(t.Context())
		failures := map[string]error{"Put": putErr, "Get": getErr, "Wait": waitErr, "List": listErr, "Ping": pingErr}
		if c.what == "no such namespace" { // reading what isn't there is no error to Kubernetes
			failures = map[string]error{"Put": putErr, "Ping": pingErr}
		}
		for method, err := range failures {
			if err == nil || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %s: %v, want another error", c.what, method, err)
				continue
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s: %q is not in: %v", c.what, method, want, err)
				}
			}
		}
		if f := s.Inspect(t.Context()); f[len(f)-1].Status == driver.StatusOK && f[len(f)-2].Status == driver.StatusOK {
			t.Errorf("%s: Inspect found nothing: %+v", c.what, f)
		}
	}
}

func TestPing(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	s, _ := boundStore(t, srv, "") // which may not look at the namespace
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOutcomes: what the server may have carried out is unknown, whatever it says; what it refused isn't. Nothing is sent
// twice: the answer to a repetition would hide what the first request did.
func TestOutcomes(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	var c counter
	s := open(t, dial(t, c.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	reply := func(code int, header string) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {"application/json"}}
			if header != "" {
				h.Set("Retry-After", header)
			}
			body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made up","code":%d}`, code)
			return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
	}
	for _, e := range []struct {
		what    string
		answer  func(*http.Request) (*http.Response, error) // nil: reply with code and retry
		unknown bool
		code    int
		retry   string
	}{
		{what: "429", code: 429, unknown: false},
		{what: "429 with Retry-After", code: 429, retry: "1", unknown: false},
		{what: "400", code: 400, unknown: false},
		{what: "413", code: 413, unknown: false},
		{what: "422", code: 422, unknown: false},
		{what: "408", code: 408, unknown: true},
		{what: "500", code: 500, unknown: true},
		{what: "500 with Retry-After", code: 500, retry: "1", unknown: true},
		{what: "503", code: 503, unknown: true},
		{what: "503 with Retry-After", code: 503, retry: "1", unknown: true},
		{what: "504", code: 504, unknown: true},
		{what: "a reset", unknown: true, answer: func(r *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
		}},
		{what: "half an answer", unknown: true, answer: func(r *http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {"application/json"}}
			return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(bytes.NewReader([]byte(`{"kind":"Lease"`))), Request: r}, nil
		}},
		{what: "no connection", answer: func(r *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}},
	} {
		rec := storetest.MustPut(t, s, held("there/"+e.what, 1))
		if e.answer == nil {
			e.answer = reply(e.code, e.retry) //nolint:bodyclose // client-go closes it
		}
		c.answer.Store(&e.answer)
		for what, write := range map[string]func() error{
			"create": func() error { _, err := s.Put(t.Context(), held("new", 1)); return err },
			"change": func() error { _, err := s.Put(t.Context(), rec); return err },
			"delete": func() error { return s.Delete(t.Context(), rec.Key, rec.Version) },
		} {
			before := c.count.Load()
			err := write()
			if err == nil || errors.Is(err, store.ErrUnknownOutcome) != e.unknown {
				t.Errorf("%s: %s: %v, want an unknown outcome: %v", e.what, what, err, e.unknown)
			}
			if n := c.count.Load() - before; n != 1 {
				t.Errorf("%s: %s: %d requests, want 1", e.what, what, n)
			}
		}
		c.answer.Store(nil)
	}
}

// TestConflictThatCantBeRead: a write that was refused is not done, though the reading of what was in the way fails.
func TestConflictThatCantBeRead(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	var c counter
	s := open(t, dial(t, c.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	rec := storetest.MustPut(t, s, held("k", 1))
	storetest.MustPut(t, s, rec)
	broken := func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return nil, errors.New("broken")
		}
		return c.next.RoundTrip(r)
	}
	c.answer.Store(&broken)
	for what, err := range map[string]error{
		"create": func() error { _, err := s.Put(t.Context(), held("k", 2)); return err }(),
		"change": func() error { _, err := s.Put(t.Context(), rec); return err }(),
		"delete": s.Delete(t.Context(), "k", rec.Version),
	} {
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "not done") || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestClientsLimit: a request that the client itself holds back for too long was not sent, and is not unknown.
func TestClientsLimit(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	cfg := config(t, srv, srv.Addr)
	cfg.QPS, cfg.Burst = 0.01, 1
	var c counter
	s := open(t, dial(t, c.wrap(cfg)), newNamespace(t, srv))
	storetest.MustPut(t, s, held("a", 1))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of the 100 that the limit would have it wait
	defer cancel()
	_, err := s.Put(ctx, held("b", 1))
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "QPS") || c.count.Load() != 1 {
		t.Errorf("%v after %d requests, want an error that names QPS after 1", err, c.count.Load())
	}
}

// TestFinalizers: a record that somebody keeps from being deleted may be deleted later.
func TestFinalizers(t *testing.T) {
	s, _ := fresh(t)
	rec := storetest.MustPut(t, s, held("k", 1))
	annotate(t, s, "k", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	rec, err := s.Get(t.Context(), rec.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "k", rec.Version); !errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "example.com/keep") {
		t.Errorf("%v", err)
	}
	annotate(t, s, "k", `{"metadata":{"finalizers":null}}`)
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the finalizer was taken off: %v", err)
	}
}
