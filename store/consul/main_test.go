package consul

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// requests counts what clients send.
type requests struct {
	http.RoundTripper
	mu   sync.Mutex
	sent []string // method, path, and which reads are consistent

	queries sync.Map // paths of blocking queries that were answered
}

// opened has the requests of each handle.
var opened sync.Map

func (r *requests) answered(path string) bool {
	_, ok := r.queries.Load(path)
	return ok
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	what := req.Method + " " + req.URL.Path
	if req.URL.Query().Has("consistent") {
		what += " consistent"
	}
	r.sent = append(r.sent, what)
	r.mu.Unlock()
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil && req.URL.Query().Has("wait") {
		r.queries.Store(req.URL.Path, true)
	}
	return resp, err
}

// during returns what was sent while f ran.
func (r *requests) during(f func()) []string {
	r.mu.Lock()
	r.sent = nil
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent
}

// dial returns a client with connections of its own, and what closes them.
func dial(config api.Config) (*api.Client, *requests, func(), error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, MaxIdleConns: 100}
	tls, err := api.SetupTLSConfig(&config.TLSConfig)
	if err != nil {
		return nil, nil, nil, err
	}
	transport.TLSClientConfig = tls
	r := &requests{RoundTripper: transport}
	config.HttpClient = &http.Client{Transport: r}
	client, err := api.NewClient(&config)
	return client, r, transport.CloseIdleConnections, err
}

// open returns a store with a client of its own.
func open(t testing.TB, config api.Config, opts Options) (*Store, *requests) {
	t.Helper()
	client, r, hangUp, err := dial(config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(s, r)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		hangUp()
	})
	return s, r
}

// aPrefix returns a prefix that no other test uses.
func aPrefix() string { return "test/" + time.Now().Format("150405.000000000") }

func held(key string) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: 1, TTL: time.Minute, Nonce: time.Now().String()}
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) }

// owned is a store that closes the connections that were made for it.
type owned struct {
	*Store
	hangUp func()
}

func (o owned) Close() error {
	err := o.Store.Close()
	o.hangUp()
	return err
}

func TestConformance(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network := servers.Proxy(t, srv.Addr)
		prefix := aPrefix()
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				client, _, hangUp, err := dial(api.Config{Address: network.Addr})
				if err != nil {
					return nil, err
				}
				s, err := New(client, Options{Prefix: prefix})
				return owned{s, hangUp}, err
			},
			Pushes: true,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}
