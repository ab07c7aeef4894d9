package servers

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// pool holds the servers that the tests of this program share.
var pool = struct {
	sync.Mutex
	dir     string // "" outside of Main
	servers map[string]*sharedServer
}{servers: map[string]*sharedServer{}}

// sharedServer is started by the first test that asks for it.
type sharedServer struct {
	once   sync.Once
	number int // of its folder
	server *Server
	err    error
}

// M is what testing.M is to TestMain.
type M interface{ Run() int }

// Main returns m such that its Run stops the shared servers after the last test. TestMain uses it
// in place of m, so that a check for leaks comes after that:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }
func Main(m M) M { return pooled{m} }

type pooled struct{ tests M }

func (p pooled) Run() int {
	dir, err := os.MkdirTemp("", "leasehold-servers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pool.Lock()
	pool.dir = dir
	pool.Unlock()
	code := p.tests.Run()
	pool.Lock()
	defer pool.Unlock()
	for _, shared := range pool.servers {
		if shared.server != nil {
			shared.server.Stop()
		}
	}
	clear(pool.servers)
	pool.dir = ""
	return code
}

// share returns the shared server with that configuration.
func share(t testing.TB, e *engine, c config) *Server {
	t.Helper()
	key := fmt.Sprintf("%s %t %t %q %p %q", e.name, c.tls, c.mutual, c.password, c.primary, c.settings)
	pool.Lock()
	dir := pool.dir
	shared := pool.servers[key]
	if shared == nil {
		shared = &sharedServer{number: len(pool.servers)}
		pool.servers[key] = shared
	}
	pool.Unlock()
	if dir == "" {
		t.Fatal("a shared server has to be stopped after the last test: TestMain must run servers.Main(m)")
	}
	shared.once.Do(func() {
		// It outlives the test that asks first, and so its context.
		shared.server, shared.err = launch(context.Background(), e, fmt.Sprintf("%s/%d", dir, shared.number), c)
	})
	if shared.err != nil {
		fail(t, e, shared.err)
	}
	s := *shared.server
	s.tb = t
	t.Cleanup(func() { s.showLog(t) })
	return &s
}
