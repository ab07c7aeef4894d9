package servers

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Network is a TCP proxy in front of a server: what goes wrong in a network goes wrong in it when
// it is told to. Faults add up, and count for connections that are open already. All methods may be
// called by several goroutines at once.
type Network struct {
	Addr string // where clients connect to: the host and port of the proxy

	failed  func(format string, args ...any)
	target  string
	port    port
	running sync.WaitGroup // every goroutine

	mu       sync.Mutex
	listener net.Listener  // nil while connections are refused
	changed  chan struct{} // closed, and replaced, at every change of what is below
	links    map[*link]bool
	closed   bool
	cut      bool
	delay    time.Duration
	drop     bool // what clients send is thrown away
	swallow  bool // what the server sends is thrown away
	lost     int  // how often something was thrown away
}

// Proxy starts a proxy in front of an address. It ends with the test.
func Proxy(t testing.TB, target string) *Network {
	t.Helper()
	n, err := Through(target, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// Through is [Proxy] for what is no test; the caller closes it. failed is called when it can't
// listen again.
func Through(target string, failed func(format string, args ...any)) (*Network, error) {
	p, err := reserve()
	if err != nil {
		return nil, err
	}
	n := &Network{
		Addr: p.addr(), failed: failed, target: target, port: p, changed: make(chan struct{}), links: map[*link]bool{},
	}
	n.change(n.listen)
	return n, nil
}

// Cut lets nothing through any more, in either direction, and says nothing: connections stay open
// and hang, and so do new ones. What was sent meanwhile arrives after [Network.Heal].
func (n *Network) Cut() { n.change(func() { n.cut = true }) }

// Refuse closes all connections and refuses new ones, as a machine does on which no server listens.
func (n *Network) Refuse() {
	n.change(func() {
		n.deafen()
		n.closeLinks(func(*link) bool { return true })
	})
}

// Reset closes all connections that are open now.
func (n *Network) Reset() {
	n.change(func() { n.closeLinks(func(*link) bool { return true }) })
}

// Heal ends all faults. Connections from which something was thrown away are closed, for what
// follows would make no sense.
func (n *Network) Heal() {
	n.change(func() {
		n.cut, n.drop, n.swallow, n.delay = false, false, false, 0
		n.closeLinks(func(l *link) bool { return l.torn })
		n.listen()
	})
}

// Delay has everything that is sent from now on arrive that much later, in each direction; 0 ends
// it.
func (n *Network) Delay(d time.Duration) { n.change(func() { n.delay = d }) }

// SwallowReplies throws away all that the server sends: requests are carried out, and nobody hears
// of it. Ending it closes the connections from which something was thrown away.
func (n *Network) SwallowReplies(on bool) { n.throwAway(&n.swallow, on) }

// DropRequests throws away all that clients send: nothing is carried out. Ending it closes the
// connections from which something was thrown away.
func (n *Network) DropRequests(on bool) { n.throwAway(&n.drop, on) }

// Lost returns how often anything was thrown away so far.
func (n *Network) Lost() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

func (n *Network) throwAway(what *bool, on bool) {
	n.change(func() {
		if *what && !on {
			n.closeLinks(func(l *link) bool { return l.torn })
		}
		*what = on
	})
}

// Close ends the proxy and its connections, and waits for all its goroutines. [Proxy] has the test
// do it at its end.
func (n *Network) Close() {
	n.change(func() {
		if !n.closed {
			n.closed = true
			n.deafen()
			n.closeLinks(func(*link) bool { return true })
			n.port.release()
		}
	})
	n.running.Wait()
}

// change changes the network's state and wakes whoever waits for that.
func (n *Network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}

// listen starts to accept connections, unless it does so; n.mu is held.
func (n *Network) listen() {
	if n.listener != nil || n.closed {
		return
	}
	listener, err := net.Listen("tcp", n.Addr)
	if err != nil {
		n.failed("the proxy can't listen: %v", err)
		return
	}
	n.listener = listener
	n.running.Go(func() { n.accept(listener) })
}

// deafen ends accepting connections; n.mu is held.
func (n *Network) deafen() {
	if n.listener != nil {
		hangUp(n.listener)
		n.listener = nil
	}
}

// closeLinks closes the connections that it is told to; n.mu is held.
func (n *Network) closeLinks(which func(*link) bool) {
	for l := range n.links {
		if which(l) {
			l.close()
		}
	}
}
