package engines

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// kind is an engine with a server.
type kind struct {
	name    string
	version string // of the server that is tested
	// start starts a server whose data outlive it.
	start func(t testing.TB, opts ...servers.Option) *servers.Server
	// prepare makes what a store needs on it: a table, a bucket.
	prepare func(t testing.TB, srv *servers.Server) instance
}

// instance is a place for records on a server.
type instance struct {
	// open returns a handle whose connections go to addr, be that the server or something in front of it. It is closed when
	// the test ends.
	open func(t testing.TB, addr string) store.Store
}

// kinds are the engines that have a server.
var kinds = []kind{zooKeeper, dynamoDB}

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
