package engines

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/zookeeper"
)

var zooKeeper = kind{
	name: "zookeeper", start: servers.ZooKeeper,
	recipe: &recipe{name: "zk.Lock (sequential znodes)", dial: func(t testing.TB, srv *servers.Server) locker {
		conn := zkConnect(t, srv.Addr)
		return func(_ context.Context, name string) (func() error, error) {
			l := zk.NewLock(conn, "/recipe/"+name, zk.WorldACL(zk.PermAll))
			return l.Unlock, l.Lock()
		}
	}},
	prepare: func(testing.TB, *servers.Server) instance {
		return instance{open: func(t testing.TB, addr string) store.Store {
			conn := zkConnect(t, addr)
			st, err := zookeeper.New(conn, zookeeper.Options{Root: "/engines"})
			return opened(t, st, err)
		}}
	},
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func zkConnect(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, 15*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
