package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl      = leasetest.TTL
	validity = leasetest.Validity
)

// world is a program with gates in front of it, all in one bubble of virtual time: connections are pipes.
type world struct {
	*leasetest.World
	up *pipes

	mu    sync.Mutex
	serve http.HandlerFunc // what the program does; it answers with 200 when nil
	seen  []string         // the requests that reached it: method, path, token
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	leasetest.Run(t, func(t *testing.T, of *leasetest.World) {
		w := &world{World: of}
		w.up = listen(t, http.HandlerFunc(w.program))
		f(t, w)
	})
}

func (w *world) program(rw http.ResponseWriter, r *http.Request) {
	token := "-"
	if s, err := fence.ParseSequencer(r.Header.Get(fence.Header)); err == nil {
		token = s.Token.String()
	}
	w.mu.Lock()
	w.seen = append(w.seen, r.Method+" "+r.URL.Path+" "+token)
	serve := w.serve
	w.mu.Unlock()
	if serve != nil {
		serve(rw, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
}

func (w *world) setServe(f http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve = f
}

// requests returns what reached the program since it was asked for last.
func (w *world) requests() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.seen, ", ")
	w.seen = nil
	return s
}

// instance is a gate, and what holds a lease for it.
type instance struct {
	*leasetest.Host
	w      *world
	gate   *gate.Gate
	m      *lease.Manager
	client *http.Client
	server *pipes
}

// instance starts one, closed for writes.
func (w *world) instance(opts gate.Options) *instance {
	w.T.Helper()
	i := &instance{Host: w.Host(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: 5 * time.Millisecond} }), w: w}
	if opts.Upstream == nil {
		opts.Upstream = &url.URL{Scheme: "http", Host: "program"}
	}
	if opts.Dial == nil {
		opts.Dial = w.up.dial
	}
	opts.Name, opts.Clock = "job", i.Clk
	i.m = i.Manage(i.Net, lease.Options{})
	var err error
	if i.gate, err = gate.New(opts); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(i.gate.Close)
	i.server = listen(w.T, i.gate)
	i.client = i.server.client(w.T)
	return i
}

// setCut cuts the instance off from the store, or ends that. What is on its way arrives.
func (i *instance) setCut(cut bool) {
	if i.Heal(); cut {
		i.Cut()
	}
	time.Sleep(20 * time.Millisecond)
}

// awaitRenewal waits until enough is left of the term.
func (i *instance) awaitRenewal() {
	for n := 0; !i.gate.State().Open && n < 200; n++ {
		time.Sleep(10 * time.Millisecond)
	}
}

// held is an instance that holds the lease, or did.
type held struct {
	*instance
	lease *lease.Lease
	close context.CancelCauseFunc // has the gate close
	err   error                   // of Open, after returned
	at    time.Time               // when it has returned

	returned chan struct{}
}

// hold has the instance acquire the lease and open.
func (i *instance) hold() *held {
	i.w.T.Helper()
	l, err := i.m.Acquire(i.w.T.Context(), "job")
	if err != nil {
		i.w.T.Fatal(err)
	}
	h := &held{instance: i, lease: l, returned: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(l.Context())
	h.close = cancel
	go func() {
		defer close(h.returned)
		h.err = i.gate.Open(ctx, l)
		h.at = time.Now()
	}()
	i.w.T.Cleanup(func() {
		cancel(nil)
		<-h.returned
	})
	synctest.Wait()
	return h
}

// end returns when the validity ends unless it is renewed.
func (h *held) end() time.Time { return time.Now().Add(h.lease.Left()) }

// answer is what a client got.
type answer struct {
	code   int
	header http.Header
	text   string
	err    error // that the answer ended with, or the request
	body   struct {
		Error, Name, Holder, Outcome, Message string
		Token                                 fence.Token
		Since                                 time.Time
		Kind, Reason, Status                  string
		Code                                  int
	}
}

func (a answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("%d, then %v", a.code, a.err)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", a.code, a.body.Error, a.body.Outcome))
}

func (i *instance) do(method, path, body string, headers ...string) answer {
	return send(i.client, method, "http://gate"+path, strings.NewReader(body), headers...)
}

func send(c *http.Client, method, url string, body io.Reader, headers ...string) (a answer) {
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		return answer{err: err}
	}
	for n := 0; n < len(headers); n += 2 {
		r.Header.Add(headers[n], headers[n+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	a = answer{code: resp.StatusCode, header: resp.Header, text: string(text), err: err}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		a.err = errors.Join(a.err, json.Unmarshal(text, &a.body))
	}
	return a
}

// start is do, at the same time as what follows.
func (i *instance) start(method, path, body string) <-chan answer {
	c := make(chan answer, 1)
	go func() { c <- i.do(method, path, body) }()
	synctest.Wait()
	return c
}

// expect wants an answer, and what reached the program for it.
func (i *instance) expect(method, path, want, reached string, headers ...string) {
	i.w.T.Helper()
	if got := i.do(method, path, "", headers...).String(); got != want {
		i.w.T.Errorf("%s %s: %s, want %s", method, path, got, want)
	}
	if got := i.w.requests(); got != reached {
		i.w.T.Errorf("%s %s: %q reached the program, want %q", method, path, got, reached)
	}
}

// pipes is a network of one server.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// listen serves HTTP/1 and HTTP/2 until the test ends.
func listen(t *testing.T, h http.Handler) *pipes {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	var handlers sync.WaitGroup
	server := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		h.ServeHTTP(rw, r)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(p) // until Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
		handlers.Wait()
	})
	return p
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// http2 is a client that speaks HTTP/2.
func (i *instance) http2() *http.Client {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	c := i.server.client(i.w.T)
	c.Transport.(*http.Transport).Protocols = &protocols
	return c
}

func (p *pipes) client(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: p.dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
