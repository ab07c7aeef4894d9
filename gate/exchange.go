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

	"github.com/leasehold/leasehold/internal/httpwrite"
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
	body    bool     // it brings one
	what    string   // for the log
	o       *opening // of a write

	mu    sync.Mutex
	over  bool // the handler is about to return
	cutAt bool // it was cut

	sent    atomic.Bool // there was a connection to send it on
	wrote   atomic.Bool // its header was sent, or a part of it
	stalled atomic.Bool // its client didn't send the rest of it
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// newExchange returns the exchange of a request, and the context of its way to the upstream.
func (g *Gate) newExchange(w http.ResponseWriter, r *http.Request) (*exchange, context.Context) {
	x := &exchange{g: g, rc: http.NewResponseController(w), upgrade: httpwrite.Upgrade(r), body: httpwrite.HasBody(r), what: r.Method + " " + r.URL.Path}
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
	x.g.opts.Log.Warn("a write was cut, and may have been done", "request", x.what, "lease", x.o.seq, "sent", x.sent.Load())
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

// alone reports whether a request must be the last on its connection: a program that doesn't read
// its body runs that as the next request. Of writes that isn't asked where a body is expected, as
// it would cost a connection for each.
func (x *exchange) alone(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return x.body && x.o == nil
	}
	return x.body
}

// connected is called with the connection that a request is about to be sent on, and keeps it from
// being sent if it must not be. A request that has to be the last there and isn't marked so is
// shared.
func (x *exchange) connected(info httptrace.GotConnInfo, shared bool) {
	http2 := x.g.opts.Upstream.Scheme == schemeH2C && !x.upgrade
	if secure, ok := info.Conn.(*tls.Conn); ok {
		http2 = secure.ConnectionState().NegotiatedProtocol == "h2"
	}
	var why error
	switch {
	case x.ctx.Err() != nil || x.o != nil && x.o.term.Left() < x.g.opts.MinLeft:
		why = errShort
	case x.o != nil && x.wrote.Load() && !http2:
		// HTTP/2 sends again only what the program says it has not looked at.
		why = errTwice
	case shared && !http2:
		why = errShared
	default:
		x.sent.Store(true)
		if !http2 {
			begin(info.Conn)
		}
		return
	}
	x.cancel(why)
	if !http2 { // HTTP/2 looks at the context before it sends anything. HTTP/1 doesn't.
		_ = info.Conn.Close() // to have sending fail is the purpose
	}
}

// requestBody is what a client sends.
type requestBody struct {
	io.ReadCloser
	x    *exchange
	left int64 // bytes that are to come; less than 0 when that isn't known
}

func newRequestBody(r *http.Request, x *exchange) *requestBody {
	b := &requestBody{r.Body, x, -1}
	if r.ContentLength > 0 {
		b.left = r.ContentLength
	}
	return b
}

// Read implements [io.Reader]. What has come too late is not taken on.
//
// The last bytes come with their end. A transport asks once more for that, and by then the upstream
// may have answered, on which net/http closes the body: the transport would take that for an error
// of the request, and cut the answer.
func (b *requestBody) Read(p []byte) (n int, err error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	b.x.patiently(b.x.rc.SetReadDeadline, func() { n, err = b.ReadCloser.Read(p) })
	if b.x.overdue() {
		return 0, errCut
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.x.stalled.Store(true)
	}
	if b.left > 0 {
		if b.left = max(b.left-int64(n), 0); b.left == 0 && err == nil {
			err = io.EOF
		}
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
