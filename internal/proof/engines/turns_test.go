package engines

import (
	"bytes"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// meter is a relay that counts round trips: how often a client speaks on a connection on which the server spoke last. It counts alike
// for all engines, and knows of protocols only which frames of HTTP/2 say nothing.
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
	asked := false // the client spoke last
	m.wg.Go(func() {
		var f frames
		m.pipe(client, server, func(b []byte) {
			if f.says(b) >= request && !asked {
				m.turns++
				asked = true
			}
		})
	})
	m.wg.Go(func() {
		var f frames
		m.pipe(server, client, func(b []byte) {
			if f.says(b) > 0 {
				asked = false
			}
		})
	})
}

// request is the least size of one, in bytes: what is smaller keeps a connection.
const request = 40

// frames follows one direction of a connection. etcd's client and server tell each other at any moment how much they take, and that they
// are there: that is neither a request nor an answer. A request's HEADERS and its DATA may be sent apart, and be small.
type frames struct {
	begun, http2 bool
	head         []byte // of a frame, as far as it has come
	left         int    // of a frame
	speaks       bool   // the frame is HEADERS or DATA
}

// A client of HTTP/2 begins with the preface, and its server, which may be the first to speak, with SETTINGS of no stream.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

var settings = regexp.MustCompile(`(?s)^\x00\x00.\x04\x00{5}`)

// says returns how much is said by b: its size, and in HTTP/2 that of a request if it has a piece of HEADERS or of DATA, else 0.
func (f *frames) says(b []byte) int {
	if !f.begun {
		text, client := bytes.CutPrefix(b, []byte(preface))
		f.begun, f.http2, b = true, client || settings.Match(b), text
	}
	if !f.http2 {
		return len(b)
	}
	said := 0
	for len(b) > 0 {
		if f.left == 0 {
			n := min(9-len(f.head), len(b))
			f.head, b = append(f.head, b[:n]...), b[n:]
			if len(f.head) < 9 {
				break
			}
			f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
			f.speaks, f.head = f.head[3] <= 1, nil // DATA is 0, HEADERS 1
			if f.speaks {
				said = request
			}
		}
		n := min(f.left, len(b))
		f.left, b = f.left-n, b[n:]
		if f.speaks {
			said = request
		}
	}
	return said
}

// pipe copies what from says to to, and tells of each piece under the lock, before it goes on.
func (m *meter) pipe(from, to net.Conn, tell func(b []byte)) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			m.mu.Lock()
			tell(buf[:n])
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

// Of HTTP/2 only HEADERS and DATA are speech, wherever the pieces of the stream are cut.
func TestFramesThatSayNothing(t *testing.T) {
	frame := func(kind byte, payload int) string {
		return string([]byte{0, 0, byte(payload), kind, 0, 0, 0, 0, 1}) + strings.Repeat("x", payload)
	}
	const headers, control, ping, window = 1, 4, 6, 8
	quiet := frame(control, 0) + frame(ping, 8) + frame(window, 4) + frame(control, 6)
	for cut := 1; cut < 12; cut++ {
		var client, server frames
		begin := string([]byte{0, 0, 6, 4, 0, 0, 0, 0, 0}) + "123456"
		if client.says([]byte(preface+begin)) != 0 || server.says([]byte(begin)) != 0 {
			t.Fatal("the beginning is speech")
		}
		speech := func(f *frames, text string) (n int) {
			for at := 0; at < len(text); at += cut {
				n += f.says([]byte(text[at:min(at+cut, len(text))]))
			}
			return n
		}
		if speech(&client, quiet) != 0 || speech(&server, quiet) != 0 {
			t.Errorf("cut every %d bytes, control frames are speech", cut)
		}
		if speech(&client, frame(headers, 3)) == 0 || speech(&server, frame(headers, 3)+frame(0, 7)) == 0 || speech(&client, quiet) != 0 {
			t.Errorf("cut every %d bytes, small HEADERS are none, or control frames are after them", cut)
		}
	}
	for _, other := range []string{"*1\r\n$4\r\nPING\r\n", "\x00\x00\x00\x25\x00\x00\x00\x00\x00", "INFO {}\r\n"} {
		if n := new(frames).says([]byte(other)); n != len(other) {
			t.Errorf("%q says %d bytes of %d", other, n, len(other))
		}
	}
}
