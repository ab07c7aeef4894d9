package accept

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that happens soon.
const patience = 20 * time.Second

// site is a listener on this machine.
type site struct {
	*Listener
	t        *testing.T
	accepted chan net.Conn
	log      syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newSite(t *testing.T, opts Options) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, accepted: make(chan net.Conn, 16)}
	opts.Clock, opts.Log = clock.System(), slog.New(slog.NewTextHandler(&s.log, nil))
	if opts.Stall == 0 {
		opts.Stall = patience
	}
	s.Listener = New(l, opts)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			s.accepted <- c
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		wg.Wait()
	})
	return s
}

// dial connects from an address of this machine.
func (s *site) dial(from string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(s.t.Context(), "tcp", s.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// enters connects, and returns both ends of a connection that is accepted.
func (s *site) enters(from string) (mine, its net.Conn) {
	s.t.Helper()
	c := s.dial(from)
	select {
	case its := <-s.accepted:
		s.t.Cleanup(func() { _ = its.Close() })
		return c, its
	case <-time.After(patience):
		s.t.Fatalf("a connection from %s is not accepted", from)
		return nil, nil
	}
}

// refused connects, and sees that the connection is closed without a word.
func (s *site) refused(from string) {
	s.t.Helper()
	c := s.dial(from)
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || os.IsTimeout(err) {
		s.t.Fatalf("a connection from %s: %d bytes, %v", from, n, err)
	}
}

func TestLimits(t *testing.T) {
	s := newSite(t, Options{Most: 3, PerClient: 2})
	_, one := s.enters("127.0.0.1")
	s.enters("127.0.0.1")
	s.refused("127.0.0.1") // a client's own limit
	s.enters("127.0.0.2")
	s.refused("127.0.0.3") // everybody's
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	_ = one.Close() // as net/http does at times: it is counted once
	s.enters("127.0.0.3")
	s.refused("127.0.0.1")
	want := `
# HELP leasehold_connections Connections that are open.
# TYPE leasehold_connections gauge
leasehold_connections 3
# HELP leasehold_connections_refused_total Connections that were closed at once, by the limit that they were beyond: all, or client for one client's.
# TYPE leasehold_connections_refused_total counter
leasehold_connections_refused_total{limit="all"} 2
leasehold_connections_refused_total{limit="client"} 1
`
	if err := testutil.CollectAndCompare(s.Listener, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if text := s.log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "limit=client most=2 open=2 client=127.0.0.1/32") {
		t.Errorf("the log is not told once: %s", text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) != 3 {
		t.Errorf("clients that have gone are remembered: %v", s.of)
	}
}

// A client that doesn't read what it asked for loses its connection; one that reads slowly, but does, keeps it.
func TestClientThatDoesNotRead(t *testing.T) {
	s := newSite(t, Options{Stall: 50 * time.Millisecond})
	_, its := s.enters("127.0.0.1")
	written := make(chan error, 1)
	go func() {
		_, err := its.Write(make([]byte, 64<<20)) // more than any buffer on the way
		written <- err
	}()
	select {
	case err := <-written:
		if !os.IsTimeout(err) {
			t.Errorf("it ended with %v, want that it took too long", err)
		}
	case <-time.After(patience):
		t.Fatal("it waits for ever")
	}
}

func TestClientThatReads(t *testing.T) {
	s := newSite(t, Options{})
	c, its := s.enters("127.0.0.1")
	text := bytes.Repeat([]byte("0123456789"), 1<<20)
	read := make(chan []byte, 1)
	go func() {
		b, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		read <- b
	}()
	if n, err := its.Write(text); n != len(text) || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := its.Close(); err != nil {
		t.Fatal(err)
	}
	if b := <-read; !bytes.Equal(b, text) {
		t.Errorf("%d bytes have arrived, or others", len(b))
	}
	if n, err := its.Write(nil); n != 0 || err == nil {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestWhoAClientIs(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%lo": "fe80::/64",
	} {
		ip := netip.MustParseAddr(addr)
		if got := client(net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 1))).String(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := client(&net.UnixAddr{Name: "/x"}); got.IsValid() {
		t.Errorf("%v", got)
	}
}
