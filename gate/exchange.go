package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// farewell is how long a client has to take the rest of an answer that was cut.
const farewell = time.Second

// exchange is one request, on its way.
type exchange struct {
	g       *Gate
	rc      *http.ResponseController
	ctx     context.Context // of the request to the upstream
	cancel  context.CancelCauseFunc
	upgrade bool
	what    string   // for the log
	o       *opening // of a write

	mu    sync.Mutex
	over  bool // the handler is about to return
	cutAt bool // it was cut

	sent    atomic.Bool // there was a connection to send it on
	stalled atomic.Bool // its client didn't send the rest of it
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// newExchange returns the exchange of a request, and the context of its way to the upstream.
func (g *Gate) newExchange(w http.ResponseWriter, r *http.Request) (*exchange, context.Context) {
	x := &exchange{g: g, rc: http.NewResponseController(w), upgrade: upgrade(r), what: r.Method + " " + r.URL.Path}
	ctx, cancel := context.WithCancelCause(r.Context())
	x.ctx, x.cancel = ctx, cancel
	return x, context.WithValue(ctx, exchangeKey{}, x)
}

// end has nothing done to the client's connection any more, which the next request may be on.
func (x *exchange) end() {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.cancel(nil)
}

// cut ends a write: first its way to the upstream, then what waits for the client.
func (x *exchange) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.cutAt {
		return
	}
	x.cutAt = true
	x.cancel(errCut)
	x.g.cut.Add(1)
	now := x.g.clk.Wall()
	// Errors are those of a connection that can't do this, or is gone.
	_ = x.rc.SetReadDeadline(now)
	_ = x.rc.SetWriteDeadline(now.Add(farewell))
	x.g.opts.Log.Warn("a write was cut, and may have been done", "request", x.what, "lease", x.o.seq.String(), "sent", x.sent.Load())
}

// overdue reports whether this is a write that must not go on.
func (x *exchange) overdue() bool { return x.o != nil && x.o.term.Left() < x.g.opts.CutBefore }

// patiently calls f, which waits for the client, with a deadline.
func (x *exchange) patiently(set func(time.Time) error, f func()) {
	x.deadline(set, x.g.clk.Wall().Add(x.g.opts.Stall))
	f()
	x.deadline(set, time.Time{})
}

// deadline sets one, but not over that of a cut.
func (x *exchange) deadline(set func(time.Time) error, t time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over && !x.cutAt {
		_ = set(t) // a connection that has no deadlines has none
	}
}

// connected is told of the connection that a write is about to be sent on, and keeps it from being sent if that took too long.
func (x *exchange) connected(info httptrace.GotConnInfo) {
	if x.o.term.Left() >= x.g.opts.MinLeft && x.ctx.Err() == nil {
		x.sent.Store(true)
		return
	}
	x.cancel(errShort)
	// HTTP/2 looks at the context before it sends anything. HTTP/1 doesn't.
	secure, ok := info.Conn.(*tls.Conn)
	if http2 := x.g.opts.Upstream.Scheme == schemeH2C && !x.upgrade || ok && secure.ConnectionState().NegotiatedProtocol == "h2"; !http2 {
		_ = info.Conn.Close() // to have sending fail is the purpose
	}
}

// requestBody is what a client sends.
type requestBody struct {
	io.ReadCloser
	x *exchange
}

// Read implements [io.Reader]. What has come too late is not taken on.
func (b requestBody) Read(p []byte) (n int, err error) {
	b.x.patiently(b.x.rc.SetReadDeadline, func() { n, err = b.ReadCloser.Read(p) })
	if b.x.overdue() {
		return 0, errCut
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.x.stalled.Store(true)
	}
	return n, err
}

// response is what a client receives.
type response struct {
	http.ResponseWriter
	x *exchange
}

// Unwrap is for [http.ResponseController].
func (w response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements [io.Writer].
func (w response) Write(p []byte) (n int, err error) {
	w.x.patiently(w.x.rc.SetWriteDeadline, func() { n, err = w.ResponseWriter.Write(p) })
	return n, err
}

// FlushError is for [http.ResponseController].
func (w response) FlushError() (err error) {
	w.x.patiently(w.x.rc.SetWriteDeadline, func() { err = w.x.rc.Flush() })
	return err
}

// upgraded is an upstream's end of a connection that goes on in another protocol.
type upgraded struct {
	io.ReadWriteCloser
	x *exchange
}

// Write implements [io.Writer].
func (u upgraded) Write(p []byte) (int, error) {
	if u.x.overdue() {
		return 0, errCut
	}
	return u.ReadWriteCloser.Write(p)
}

// CloseWrite tells the upstream that nothing more comes, as [httputil.ReverseProxy] wants it.
func (u upgraded) CloseWrite() error {
	if c, ok := u.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return u.Close()
}
