package engines

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// kind is an engine with a server.
type kind struct {
	name string
	// start starts a server whose data outlive it.
	start func(t testing.TB, opts ...servers.Option) *servers.Server
	// prepare makes what a store needs on it: a table, a bucket.
	prepare func(t testing.TB, srv *servers.Server) instance
	// recipe is the lock that the engine's own client, or its manual, offers: nil where there is none.
	recipe *recipe
}

// recipe is a lock of others, to compare with.
type recipe struct {
	name     string
	volatile bool // it writes nothing that outlives the server: pairs of it are no durable ones
	// dial returns a client of its own, whose locks are taken by lock.
	dial func(t testing.TB, srv *servers.Server) locker
}

// locker takes the lock of a name, waiting for it, and returns what gives it back.
type locker func(ctx context.Context, name string) (unlock func() error, err error)

// instance is a place for records on a server.
type instance struct {
	// open returns a handle whose connections go to addr, be that the server or something in front of it. It is closed when
	// the test ends.
	open func(t testing.TB, addr string) store.Store
}

// kinds are the engines that have a server.
var kinds = []kind{etcdKind, consulKind, zooKeeper, kubernetesKind, postgresKind, redisKind, natsKind, dynamoDB}

// onEach has try use each engine, the embedded file first. All handles that it opens are on one set of records.
func onEach(t *testing.T, try func(t *testing.T, open func(t testing.TB) store.Store)) {
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "leases.db")
		try(t, func(t testing.TB) store.Store {
			st, err := file.Open(t.Context(), path, file.Options{})
			return opened(t, st, err)
		})
	})
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			srv := k.start(t)
			inst := k.prepare(t, srv)
			try(t, func(t testing.TB) store.Store { return inst.open(t, srv.Addr) })
		})
	}
}

// opened is a store that is closed when the test ends.
func opened[S store.Store](t testing.TB, st S, err error) store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}
