package engines

import (
	"net"
	"sync"
	"testing"
)

// meter is a relay that counts round trips: how often a client speaks on a connection on which the server spoke last. It knows
// no protocol, so it counts alike for all engines.
type meter struct {
	addr string

	mu    sync.Mutex
	turns int
	conns map[net.Conn]bool
	ended bool
	wg    sync.WaitGroup
}

func newMeter(t testing.TB, target string) *meter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	m.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			m.relay(client, server)
		}
	})
	t.Cleanup(func() {
		l.Close()
		m.mu.Lock()
		m.ended = true
		for c := range m.conns {
			c.Close()
		}
		m.mu.Unlock()
		m.wg.Wait()
	})
	return m
}

func (m *meter) relay(client, server net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		client.Close()
		server.Close()
		return
	}
	m.conns[client], m.conns[server] = true, true
	said := 0 // bytes that the client sent since the server spoke
	m.wg.Go(func() {
		m.pipe(client, server, func(n int) {
			if said < request && said+n >= request {
				m.turns++
			}
			said += n
		})
	})
	m.wg.Go(func() { m.pipe(server, client, func(int) { said = 0 }) })
}

// request is the least size of one, in bytes: what is smaller keeps a connection, or regulates its flow. The pieces of one are added up,
// since a busy client of HTTP/2 may send the header of a request by itself, and its body later.
const request = 40

// pipe copies what from says to to, and tells of each piece under the lock, before it goes on.
func (m *meter) pipe(from, to net.Conn, tell func(n int)) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			m.mu.Lock()
			tell(n)
			m.mu.Unlock()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// of returns how many round trips f makes: the least of several tries, for clients also send what keeps a connection.
func (m *meter) of(f func()) int {
	least := -1
	for range 5 {
		m.mu.Lock()
		before := m.turns
		m.mu.Unlock()
		f()
		m.mu.Lock()
		if n := m.turns - before; least < 0 || n < least {
			least = n
		}
		m.mu.Unlock()
	}
	return least
}
