package engines

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
)

var etcdKind = kind{
	name: "etcd", start: servers.Etcd,
	prepare: func(testing.TB, *servers.Server) instance {
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := etcd.New(etcdClient(t, addr), etcd.Options{Prefix: "engines/"})
			return opened(t, st, err)
		}}
	},
	recipe: &recipe{name: "concurrency.Mutex", dial: func(t testing.TB, srv *servers.Server) locker {
		session, err := concurrency.NewSession(etcdClient(t, srv.Addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() })
		return func(ctx context.Context, name string) (func() error, error) {
			m := concurrency.NewMutex(session, "recipe/"+name)
			return func() error { return m.Unlock(ctx) }, m.Lock(ctx)
		}
	}},
}

func etcdClient(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
