package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// How long sessions are that tests ask for: long, so that a machine that stalls breaks no connection; short where a lost one is to be
// noticed soon.
const (
	sessionTimeout = 30 * time.Second
	shortSession   = 3 * time.Second
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// requests counts what connections send, by operation code.
type requests struct {
	mu    sync.Mutex
	count map[uint32]int
}

// Operation codes of the protocol.
const (
	opCreate, opExists, opGetData, opChildren, opMulti = 1, 3, 4, 12, 14
)

func (r *requests) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, addr, timeout)
	return counted{conn, r}, err
}

// during returns how many requests of each kind were sent while f ran.
func (r *requests) during(f func()) map[uint32]int {
	r.mu.Lock()
	r.count = map[uint32]int{}
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.count
	r.count = nil
	return sent
}

type counted struct {
	net.Conn
	requests *requests
}

// Write counts a packet: its length, its number, its operation code. The client writes each in one piece.
func (c counted) Write(b []byte) (int, error) {
	const ping = 11
	if len(b) >= 12 && int(binary.BigEndian.Uint32(b)) == len(b)-4 {
		if op := binary.BigEndian.Uint32(b[8:]); op != ping {
			c.requests.mu.Lock()
			if c.requests.count != nil {
				c.requests.count[op]++
			}
			c.requests.mu.Unlock()
		}
	}
	return c.Conn.Write(b)
}

// connect returns a connection that has a session, or will have one.
func connect(t testing.TB, addr string, timeout time.Duration) (*zk.Conn, *requests) {
	t.Helper()
	r := &requests{}
	conn, _, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(quiet{}), zk.WithDialer(r.dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, r
}

// open returns a store with a connection of its own.
func open(t testing.TB, addr, root string) (*Store, *requests) {
	t.Helper()
	return openFor(t, addr, root, sessionTimeout)
}

// openFor is open with sessions of that length.
func openFor(t testing.TB, addr, root string, timeout time.Duration) (*Store, *requests) {
	t.Helper()
	conn, r := connect(t, addr, timeout)
	s, err := New(conn, Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

// aRoot returns a root that no other test uses, below a znode that no other test makes: it may be for one account.
func aRoot() string { return "/test-" + newBirth() + "/root" }

func held(key string) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: 1, TTL: time.Minute, Nonce: newBirth()}
}

// owned is a store that closes the connection that was made for it.
type owned struct{ *Store }

func (o owned) Close() error {
	err := o.Store.Close()
	o.conn.Close()
	return err
}

func TestConformance(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network := servers.Proxy(t, srv.Addr)
		root := aRoot()
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				conn, _, err := zk.Connect([]string{network.Addr}, sessionTimeout, zk.WithLogger(quiet{}))
				if err != nil {
					return nil, err
				}
				s, err := New(conn, Options{Root: root})
				if err != nil {
					conn.Close()
				}
				return owned{s}, err
			},
			Pushes: true,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) }
