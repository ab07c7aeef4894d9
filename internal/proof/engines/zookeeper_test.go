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

var _ = register(kind{
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
	floor:   zooKeeperFloor,
	release: 2,
})

func zooKeeperFloor(t testing.TB, srv *servers.Server) locker {
	conn := zkConnect(t, srv.Addr)
	return swapping(func(_ context.Context, name string, old *zk.Stat) (*zk.Stat, error) {
		if old == nil {
			_, err := conn.Create("/"+name, []byte(floorValue), 0, zk.WorldACL(zk.PermAll))
			return &zk.Stat{}, err
		}
		return conn.Set("/"+name, []byte(floorValue), old.Version)
	})
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
