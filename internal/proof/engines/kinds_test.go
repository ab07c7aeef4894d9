package engines

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
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
	floor  dialer
	// erase deletes a record by the engine's own client, where that is a matter of a line.
	erase func(t testing.TB, srv *servers.Server, name string) error
	// release is how many numbers name a line of releases, of a server that comes with the system; 0 if scripts/engines pins its version.
	release int
	planned bool   // the page on elections has its hand-overs
	crowd   *crowd // of waiters, whom BenchmarkForeignWrite tries; nil where waiters hear of their own keys alone
}

// crowd is what it takes to have 200 stores on a server at once.
type crowd struct {
	options []servers.Option
	open    func(t testing.TB, srv *servers.Server) store.Store // nil where those of the kind will do
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

// kinds are the engines that have a server, by name. Each is entered in a file of its own.
var kinds []kind

func register(k kind) kind {
	at, _ := slices.BinarySearchFunc(kinds, k, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	kinds = slices.Insert(kinds, at, k)
	return k
}

// The servers that tests can start, and the engines that are tried here, are the same.
func TestEveryServerIsTried(t *testing.T) {
	for _, s := range servers.Kinds() {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == s.Name() }) {
			t.Errorf("%s has a server, and isn't tried here: register it in %s_test.go", s.Name(), s.Name())
		}
	}
}

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
