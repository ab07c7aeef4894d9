package gate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// served is a gate on a real network that holds the lease until the test ends.
type served struct {
	gate   *gate.Gate
	server *httptest.Server
	close  context.CancelFunc
	done   chan struct{} // Open has returned
}

// serve puts a gate in front of an upstream. change may set up its server, which has TLS then.
func serve(tb testing.TB, opts gate.Options, change func(*httptest.Server)) *served {
	tb.Helper()
	return serveUnder(tb, opts, change, func(l *lease.Lease) gate.Term { return l })
}

// serveUnder is serve under a term made of the lease.
func serveUnder(tb testing.TB, opts gate.Options, change func(*httptest.Server), term func(*lease.Lease) gate.Term) *served {
	tb.Helper()
	st := memory.New(memory.Options{})
	m, err := lease.NewManager(st, lease.Options{TTL: time.Hour}) // no stall of the machine ends it
	if err != nil {
		tb.Fatal(err)
	}
	g, err := gate.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := m.Acquire(tb.Context(), "job")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{gate: g, server: httptest.NewUnstartedServer(g), close: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = g.Open(ctx, term(l)) // until the test ends
	}()
	tb.Cleanup(func() {
		cancel()
		<-s.done
		s.server.CloseClientConnections()
		s.server.Close()
		g.Close()
		_ = m.Close()
		_ = st.Close()
	})
	if change == nil {
		s.server.Start()
	} else {
		change(s.server)
		s.server.StartTLS()
	}
	for !g.State().Open {
		time.Sleep(time.Millisecond)
	}
	return s
}

// accept serves each connection to the URL that it returns, and closes it then.
func accept(tb testing.TB, serve func(net.Conn)) (url string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return "http://" + l.Addr().String()
}

func parse(tb testing.TB, text string) *url.URL {
	tb.Helper()
	u, err := url.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// authority is one that has signed the certificate of an httptest server, which it hands out to clients too.
func authority(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// closedBody is the body of a request that net/http has closed, since the answer has begun, before its end was read.
type closedBody struct{ io.Reader }

func (b closedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = http.ErrBodyReadAfterClose
	}
	return n, err
}

func (closedBody) Close() error { return nil }

// The end of a body is not asked for: when the upstream has all of it and answers, net/http closes the body, and the answer was
// cut if that was sooner than the question.
func TestAnAnswerIsNotCutByTheEndOfTheBody(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(rw, n, err)
	}))
	defer upstream.Close()
	s := serve(t, gate.Options{Upstream: parse(t, upstream.URL)}, func(*httptest.Server) {})
	const size = 100_000
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/jobs", closedBody{strings.NewReader(strings.Repeat("x", size))})
	r.ContentLength = size
	answer := httptest.NewRecorder()
	s.gate.ServeHTTP(answer, r)
	if got := answer.Body.String(); answer.Code != http.StatusOK || got != "100000 <nil>" {
		t.Errorf("got %d %q", answer.Code, got)
	}
}

// TLS with certificates on both sides of both connections, and HTTP/1 or HTTP/2 on each.
func TestTLSOnBothSides(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(rw, r.Proto+" "+r.TLS.PeerCertificates[0].Subject.String()+" "+r.Header.Get(fence.Header)[:2]+" "+r.Header.Get("X-Forwarded-Proto"))
			_, _ = rw.Write(body)
		}))
		upstream.EnableHTTP2 = http2
		upstream.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		upstream.StartTLS()
		defer upstream.Close()
		own := upstream.TLS.Certificates[0]
		s := serve(t, gate.Options{
			Upstream: parse(t, upstream.URL), TLS: &tls.Config{RootCAs: authority(upstream), Certificates: []tls.Certificate{own}},
		}, func(s *httptest.Server) {
			s.EnableHTTP2 = http2
			s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		})
		s.server.Client().Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{own}
		body := strings.Repeat("x", 1<<20)
		resp, err := s.server.Client().Post(s.server.URL+"/jobs", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
		head, rest, _ := strings.Cut(string(text), "x")
		if err != nil || resp.Proto != proto || head != proto+" O=Acme Co v1 https" || len(rest) != len(body)-1 {
			t.Errorf("%s: %s, %d bytes, %v", resp.Proto, head, len(rest), err)
		}
		stranger := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority(s.server)}}
		if a := send(&http.Client{Transport: stranger}, "GET", s.server.URL, nil); a.err == nil {
			t.Error("a client without a certificate was let in")
		}
	}
}

// HTTP/2 has no upgrades, so they go another way to the upstream; and so does what is not WebSocket, as Kubernetes' SPDY.
func TestUpgradeOverTLS(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	defer upstream.Close()
	s := serve(t, gate.Options{Upstream: parse(t, upstream.URL), TLS: &tls.Config{RootCAs: authority(upstream)}}, func(*httptest.Server) {})
	c, err := tls.Dial("tcp", s.server.Listener.Addr().String(), &tls.Config{RootCAs: authority(s.server), ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn, status := upgrade(t, c, "/socket", "SPDY/3.1")
	if status != "101 Switching Protocols" {
		t.Fatal(status)
	}
	conn.says(t, "hello")
	s.close()
	if _, err := conn.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}

// Streams go through as they come, in both directions at once, as gRPC has them; trailers too. A cut ends one.
func TestStreamOverHTTP2(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "Grpc-Status")
		rw.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(rw).Flush()
		_, _ = io.Copy(flusher{rw}, r.Body)
		rw.Header().Set("Grpc-Status", "0")
	}))
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	upstream.Config.Protocols = &h2c
	upstream.Start()
	defer upstream.Close()
	s := serve(t, gate.Options{Upstream: parse(t, strings.Replace(upstream.URL, "http:", "h2c:", 1)), Drain: 10 * time.Millisecond},
		func(s *httptest.Server) { s.EnableHTTP2 = true })
	// stream has a stream end, and returns its trailer.
	stream := func(end func(io.Closer)) (string, error) {
		body, sender := io.Pipe()
		resp, err := s.server.Client().Post(s.server.URL+"/pkg.Service/Chat", "application/grpc", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b := make([]byte, 5)
		for _, word := range []string{"hello", "world"} {
			_, _ = io.WriteString(sender, word)
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != word {
				t.Fatalf("%q, %v", b, err)
			}
		}
		end(sender)
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.Trailer.Get("Grpc-Status"), err
	}
	if status, err := stream(func(c io.Closer) { _ = c.Close() }); err != nil || status != "0" {
		t.Errorf("%q, %v", status, err)
	}
	if status, err := stream(func(io.Closer) { s.close() }); err == nil || status == "0" {
		t.Errorf("a stream that was cut has ended well: %q", status)
	}
}

type flusher struct{ http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

// A client that doesn't read is dropped after Stall. A cut waits for it no longer than it has to, which is until its connection
// is given up, and not less.
func TestDeafClient(t *testing.T) {
	var asked, wrote, size atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		for b := make([]byte, size.Load()); ; wrote.Add(1) {
			_, err := rw.Write(b)
			if err == nil {
				err = http.NewResponseController(rw).Flush()
			}
			if err != nil {
				return
			}
		}
	}))
	defer upstream.Close()
	for name, c := range map[string]struct {
		stall time.Duration
		size  int64 // of a part of the answer
	}{"dropped": {500 * time.Millisecond, 1 << 16}, "dropped from a slow stream": {500 * time.Millisecond, 400}, "cut": {time.Hour, 1 << 16}} {
		t.Run(name, func(t *testing.T) {
			size.Store(c.size)
			asked.Store(0)
			var writes counter
			s := serve(t, gate.Options{Upstream: parse(t, upstream.URL), Stall: c.stall, Drain: time.Millisecond}, func(s *httptest.Server) {
				s.Listener = counting{s.Listener, &writes}
			})
			client, err := tls.Dial("tcp", s.server.Listener.Addr().String(), &tls.Config{RootCAs: authority(s.server), ServerName: "example.com"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: gate\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the write is under way", func() bool { return asked.Load() == 1 })
			if name != "cut" {
				eventually(t, "the write has ended", func() bool { return s.gate.State().InFlight == 0 })
				return
			}
			last := int64(-1)
			eventually(t, "all buffers are full", func() bool {
				before := last
				last = wrote.Load()
				time.Sleep(200 * time.Millisecond)
				return before == last
			})
			under := writes.begun.Load()
			s.close()
			eventually(t, "the gate has closed, without waiting for the client", func() bool {
				select {
				case <-s.done:
					return true
				default:
					return false
				}
			})
			if ended := writes.ended.Load(); ended < under {
				t.Errorf("closed while the client was written to: write %d of %d has ended", ended, under)
			}
		})
	}
}

// counter counts the writes to the connections of one who listens, which come one after the other where there is one client.
type counter struct{ begun, ended atomic.Int64 }

type counting struct {
	net.Listener
	*counter
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return counted{conn, c.counter}, err
}

type counted struct {
	net.Conn
	*counter
}

func (c counted) Write(p []byte) (int, error) {
	c.begun.Add(1)
	defer c.ended.Add(1)
	return c.Conn.Write(p)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// lingering is a connection that takes its time to close, in which others might use it.
type lingering struct{ net.Conn }

func (l lingering) Close() error {
	time.Sleep(2 * time.Millisecond)
	return l.Conn.Close()
}

// shortened is a term that has little left once somebody has dialled.
type shortened struct {
	*lease.Lease
	dialled atomic.Bool
}

func (s *shortened) Left() time.Duration {
	if s.dialled.Load() {
		return min(s.Lease.Left(), 500*time.Millisecond)
	}
	return s.Lease.Left()
}

// What must not be sent is not sent, however the connection's writer and the end of the request race.
func TestNothingIsSentLate(t *testing.T) {
	var reached atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer upstream.Close()
	term := &shortened{}
	s := serveUnder(t, gate.Options{
		Upstream: parse(t, upstream.URL), CutBefore: time.Millisecond,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			term.dialled.Store(true)
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return lingering{c}, err
		},
	}, nil, func(l *lease.Lease) gate.Term { term.Lease = l; return term })
	for range 50 {
		term.dialled.Store(false)
		if a := send(s.server.Client(), "POST", s.server.URL, nil); a.String() != "503 ending not_done" {
			t.Fatalf("%s: %s", a, a.text)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d of 50 writes were sent", n)
	}
}
