package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

func TestConformance(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network, prefix := servers.Proxy(t, srv.Addr), newPrefix(t)
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				return New(dial(t, network.Addr), Options{Prefix: prefix})
			},
			Pushes: true,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}

// The handles are connected to different members, of which one leads.
func TestConformanceCluster(t *testing.T) {
	// No stall makes them elect another leader, which leaves the outcomes of writes unknown.
	members := servers.EtcdCluster(t, 3, servers.Set("heartbeat-interval", "500"), servers.Set("election-timeout", "5000"))
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		prefix := newPrefix(t)
		var opened atomic.Int64
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				return New(dial(t, members[opened.Add(1)%3].Addr), Options{Prefix: prefix})
			},
			Pushes: true,
		}
	})
}

var prefixes atomic.Int64

// newPrefix returns a prefix of the test's own.
func newPrefix(t testing.TB) string {
	return fmt.Sprintf("%s/%d/%d/", t.Name(), time.Now().UnixNano(), prefixes.Add(1))
}

// dial returns a client that is closed at the end of the test.
func dial(t testing.TB, addr string, opts ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		DialOptions: opts, Logger: clientv3.NewCtxClient(t.Context()).GetLogger(), // silent
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// open returns a store that is closed at the end of the test.
func open(t testing.TB, client *clientv3.Client, prefix string) *Store {
	t.Helper()
	s, err := New(client, Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute, Nonce: fmt.Sprint("n", token)}
}
