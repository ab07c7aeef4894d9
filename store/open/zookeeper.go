//go:build !lite

package open

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/tlsfiles"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/zookeeper"
)

// The parameters of a ZooKeeper URL.
const (
	// SCHEME:CREDENTIALS, as zkCli's addauth takes them: digest:USER:PASSWORD.
	paramAuth           = "auth"
	paramSessionTimeout = "session_timeout" // after two thirds of which a silent server is given up
)

var _ = register(Scheme{
	Name: "zk", Form: "zk://HOST[:PORT][,HOST[:PORT]…][/ROOT]", Doc: "ZooKeeper",
	parse: func(rest string) (string, error) {
		_, err := parseZooKeeper(rest)
		return rest, err
	},
	open: openZooKeeper,
	port: "2181", called: "ZooKeeper", tag: "lite", alike: []string{"zookeeper"},
})

// zooKeeperURL is what a ZooKeeper URL says.
type zooKeeperURL struct {
	server
	root         string
	scheme, auth string // "" when nobody is to be authenticated
	timeout      time.Duration
}

func parseZooKeeper(rest string) (zooKeeperURL, error) {
	const port, timeout = "2181", 10 * time.Second
	var u zooKeeperURL
	var err error
	if u.server, err = parseServer(rest, port, paramAuth, paramSessionTimeout); err != nil {
		return u, err
	}
	u.root = zookeeper.DefaultRoot
	if u.path != "" {
		u.root = "/" + u.path
	}
	if u.timeout, err = u.duration(paramSessionTimeout, timeout); err != nil {
		return u, err
	}
	if u.timeout < time.Second {
		return u, fmt.Errorf("parameter %s=%v: want a second or more", paramSessionTimeout, u.timeout)
	}
	if u.user != "" {
		u.scheme, u.auth = "digest", u.user+":"+u.password
	}
	if auth, ok := u.params[paramAuth]; ok {
		if u.user != "" {
			return u, errors.New("a user before the host and auth: want one of them")
		}
		if u.scheme, u.auth, ok = strings.Cut(auth, ":"); !ok || u.scheme == "" || u.auth == "" {
			return u, errors.New("parameter auth: want SCHEME:CREDENTIALS, such as digest:USER:PASSWORD")
		}
	}
	return u, nil
}

func openZooKeeper(ctx context.Context, rest string, opts Options) (store.Store, error) {
	u, err := parseZooKeeper(rest)
	if err != nil {
		return nil, err
	}
	secure, err := u.tlsFiles(opts.log(), false, certificates{}, nil)
	if err != nil {
		return nil, err
	}
	conn, err := dialZooKeeper(ctx, u, secure)
	if err != nil {
		return nil, err
	}
	chosen := zookeeper.Options{Root: u.root}
	if u.auth != "" {
		chosen.ACL = zk.AuthACL(zk.PermAll)
	}
	st, err := zookeeper.New(conn, chosen)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return zooKeeperStore{st, conn}, nil
}

// zooKeeperStore closes its connection with it.
type zooKeeperStore struct {
	*zookeeper.Store
	conn *zk.Conn
}

func (s zooKeeperStore) Close() error {
	err := s.Store.Close()
	s.conn.Close()
	return err
}

// sessionLimit is how long to wait for a first session. The client tries for ever, and tells nobody
// why it fails.
const sessionLimit = 10 * time.Second

// dialZooKeeper returns a connection that has a session, and is authenticated.
func dialZooKeeper(ctx context.Context, u zooKeeperURL, secure *tlsfiles.File[tls.Config]) (*zk.Conn, error) {
	d := &zooKeeperDialer{secure: secure, timeout: u.timeout, refused: map[string]bool{}}
	conn, _, err := zk.Connect(u.hosts, u.timeout, zk.WithDialer(d.dial), zk.WithHostProvider(&hostNames{}), zk.WithLogger(noLog{}))
	if err != nil {
		return nil, err
	}
	if err := d.await(ctx, conn, u.hosts); err != nil {
		conn.Close()
		return nil, fmt.Errorf("zookeeper at %s: %w", strings.Join(u.hosts, ","), err)
	}
	if u.auth != "" {
		if err := conn.AddAuth(u.scheme, []byte(u.auth)); err != nil {
			conn.Close()
			return nil, fmt.Errorf("zookeeper at %s: it takes no %s credentials, or not these: %w", strings.Join(u.hosts, ","), u.scheme, err)
		}
	}
	return conn, nil
}

// zooKeeperDialer connects for the client, and remembers why it could not.
type zooKeeperDialer struct {
	secure  *tlsfiles.File[tls.Config] // nil without TLS
	timeout time.Duration

	mu      sync.Mutex
	tried   bool            // an attempt has come to its end
	last    error           // of that
	refused map[string]bool // addresses that refuse connections
}

// nobody reports whether all addresses refuse connections: then nothing is gained by waiting.
func (d *zooKeeperDialer) nobody(addrs []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.ContainsFunc(addrs, func(addr string) bool { return !d.refused[addr] })
}

func (d *zooKeeperDialer) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	const limit = 5 * time.Second
	dialer := &net.Dialer{Timeout: limit}
	var conn net.Conn
	var err error
	if d.secure == nil {
		conn, err = dialer.Dial(network, addr)
	} else {
		conn, err = tls.DialWithDialer(dialer, network, addr, d.secure.Get())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused[addr] = errors.Is(err, syscall.ECONNREFUSED)
	if d.tried, d.last = true, err; err != nil {
		return nil, err
	}
	return hastyConn{conn, d.timeout}, nil
}

// await waits for the session.
func (d *zooKeeperDialer) await(ctx context.Context, conn *zk.Conn, addrs []string) error {
	const poll = 5 * time.Millisecond
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), sessionLimit)
	defer cancel()
	for conn.State() != zk.StateHasSession {
		if !d.nobody(addrs) && clock.Sleep(ctx, clock.System(), poll) == nil {
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.explain(context.Cause(ctx))
	}
	return nil
}

// explain says why there is no session, and what to do. d.mu is held.
func (d *zooKeeperDialer) explain(cause error) error {
	var (
		cert *tls.CertificateVerificationError
		op   *net.OpError
	)
	switch {
	case !d.tried: // a server of names, or a network, that gives no answer
		return fmt.Errorf("it can't be reached: there is no connection yet: is it running there, and does the network let this machine reach it? %w", cause)
	case d.last == nil && d.secure == nil:
		return fmt.Errorf("it takes the connection and opens no session: has it a quorum, and is this its plain client port (2181 as a rule; tls=true for the other)? %w", cause)
	case d.last == nil:
		return fmt.Errorf("it takes the connection and opens no session: has it a quorum, and does it want a certificate of yours (cert=FILE&key=FILE)? %w", cause)
	case errors.As(d.last, &cert):
		return fmt.Errorf("its certificate isn't trusted: name the file of the authority with cacert=FILE, or the name that is in it with server_name=NAME: %w", d.last)
	case errors.As(d.last, &op) && op.Op == "dial" || d.secure == nil:
		return fmt.Errorf("it can't be reached: is it running there, and does the network let this machine reach it? %w", d.last)
	}
	return fmt.Errorf("no TLS with it: name its secureClientPort, or leave the TLS parameters out: %w", d.last)
}

// hastyConn is a connection on which a server gets no more than a session's time to answer. The
// client would wait for its first answer for nearly seven.
type hastyConn struct {
	net.Conn
	timeout time.Duration
}

func (c hastyConn) SetReadDeadline(t time.Time) error {
	if latest := clock.System().Wall().Add(c.timeout); t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// hostNames gives the client the servers by their names, in turns. The client's own provider looks
// addresses up once, and so never sees a server that moved, and leaves TLS without a name to check.
type hostNames struct {
	mu      sync.Mutex
	names   []string
	next    int
	failing int // names given out since a server was reached
}

// Init implements [zk.HostProvider].
func (h *hostNames) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names, h.next = servers, rand.IntN(len(servers))
	return nil
}

// Len implements [zk.HostProvider].
func (h *hostNames) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.names)
}

// Next implements [zk.HostProvider]. The client pauses, a second, when all were tried.
func (h *hostNames) Next() (name string, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, all = h.names[h.next], h.failing > 0 && h.failing%len(h.names) == 0
	h.next = (h.next + 1) % len(h.names)
	h.failing++
	return name, all
}

// Connected implements [zk.HostProvider].
func (h *hostNames) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failing = 0
}

// noLog is the log of a client whose errors come back to its caller.
type noLog struct{}

func (noLog) Printf(string, ...any) {}
