package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// owner is a store that owns its client.
type owner struct {
	*Store
	client interface{ Close() error }
}

func (o owner) Close() error {
	err := o.Store.Close()
	_ = o.client.Close() // again, at the second Close
	return err
}

func openOwner(clientOpts *goredis.Options, opts Options) (store.Store, error) {
	client := goredis.NewClient(clientOpts)
	s, err := New(client, opts)
	if err != nil {
		client.Close()
		return nil, err
	}
	return owner{s, client}, nil
}

// options returns those of a client of the server, whose connections go to addr.
func options(t testing.TB, srv *servers.Server, addr string) *goredis.Options {
	t.Helper()
	opts, err := goredis.ParseURL(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	opts.Addr, opts.ReadTimeout = addr, time.Minute // a machine that is busy makes no write of unknown outcome
	return opts
}

// mustOpen returns a store on that server that is closed at the end of the test.
func mustOpen(t testing.TB, srv *servers.Server, addr string, opts Options) *Store {
	t.Helper()
	s, err := openOwner(options(t, srv, addr), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(owner).Store
}

var prefixes atomic.Int64

// newPrefix returns one that nobody else uses. It has all that a pattern could take for something else.
func newPrefix() string {
	return fmt.Sprintf(`test %d.%d [*]?\:`, time.Now().UnixNano(), prefixes.Add(1))
}

func TestConformance(t *testing.T) { conform(t, Options{ClockStep: time.Millisecond}) }

// TestConformancePolling is the same without PUBLISH.
func TestConformancePolling(t *testing.T) { conform(t, Options{NoNotify: true}) }

func conform(t *testing.T, opts Options) {
	srv := servers.Redis(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network := servers.Proxy(t, srv.Addr)
		opts := opts
		opts.Prefix = newPrefix()
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				return openOwner(options(t, srv, network.Addr), opts)
			},
			Pushes: true,
			HasAge: opts.ClockStep > 0,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute, Nonce: fmt.Sprint("n", token)}
}
