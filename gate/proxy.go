package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/httpwrite"
)

// schemeH2C is the scheme of an upstream that speaks HTTP/2 without TLS.
const schemeH2C = "h2c"

// The limits of connections to the upstream.
const (
	dialTimeout = 10 * time.Second
	idleTimeout = 90 * time.Second
	maxIdle     = 256
	maxHeader   = 1 << 20 // bytes of an answer's
)

// upstream are the connections to the program.
type upstream struct {
	plain    *http.Transport
	upgrades *http.Transport // HTTP/2 has none
	// The program spoke it last: no request can be taken for a part of another's body.
	http2 atomic.Bool
}

func newUpstream(o Options) *upstream {
	transport := func(p *http.Protocols) *http.Transport {
		t := &http.Transport{
			DialContext: o.Dial, TLSClientConfig: o.TLS.Clone(), Protocols: p,
			TLSHandshakeTimeout: dialTimeout, ExpectContinueTimeout: time.Second,
			MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true, // the answer is the client's to unpack
		}
		if o.Dial == nil {
			t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
		}
		t.DialContext = dialConn(t.DialContext)
		return t
	}
	both, one := new(http.Protocols), new(http.Protocols)
	one.SetHTTP1(true)
	if o.Upstream.Scheme == schemeH2C {
		both.SetUnencryptedHTTP2(true)
	} else {
		both.SetHTTP1(true)
		both.SetHTTP2(true)
	}
	u := &upstream{plain: transport(both), upgrades: transport(one)}
	u.http2.Store(o.Upstream.Scheme == schemeH2C)
	return u
}

func (u *upstream) close() {
	u.plain.CloseIdleConnections()
	u.upgrades.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	alone := x.alone(r.Method)
	if x.o != nil || alone {
		shared := alone && u.http2.Load()
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			GotConn:      func(info httptrace.GotConnInfo) { x.connected(info, shared) },
			WroteHeaders: func() { x.wrote.Store(true) },
		}))
		r.Close = alone && !shared
	}
	if r.Header.Get("Upgrade") != "" {
		return u.upgrades.RoundTrip(r)
	}
	resp, err := u.plain.RoundTrip(r)
	if http2 := err == nil && resp.ProtoMajor == 2; err == nil && http2 != u.http2.Load() {
		u.http2.Store(http2)
	}
	return resp, err
}

func (g *Gate) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: g.rewrite, Transport: g.up, FlushInterval: -1, // a stream is not held up
		BufferPool: &buffers{}, ErrorHandler: g.failed, ModifyResponse: g.answered,
		ErrorLog: slog.NewLogLogger(g.opts.Log.Handler(), slog.LevelWarn),
	}
}

// rewrite makes the request that is sent.
func (g *Gate) rewrite(p *httputil.ProxyRequest) {
	target := *g.opts.Upstream
	if target.Scheme == schemeH2C {
		target.Scheme = "http"
	}
	p.SetURL(&target)
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // the proxy takes out what it can't parse
	forwarded(p)
	g.strip(p.Out.Header)
	x := exchangeOf(p.In.Context())
	if x.o != nil {
		p.Out.Header.Set(fence.Header, x.o.text)
	}
	if !x.body {
		p.Out.Header.Del("Expect") // nothing comes that could be waited for
	}
	if !httpwrite.Upgrade(p.In) || httpwrite.OffersH2C(p.In) {
		p.Out.Header.Del("Upgrade")
		p.Out.Header.Del("Connection")
	}
}

// forwarded adds this hop to what was known of the client's request, as if the gate weren't there
// to be noticed.
func forwarded(p *httputil.ProxyRequest) {
	const by, host, proto = "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"
	for _, name := range []string{"Forwarded", by} {
		if v := p.In.Header[name]; v != nil {
			p.Out.Header[name] = v
		}
	}
	p.SetXForwarded() // adds to the first, and sets the others
	for _, name := range []string{host, proto} {
		if v := p.In.Header[name]; v != nil {
			p.Out.Header[name] = v
		}
	}
}

// framing are headers that say where a request ends.
var framing = []string{"Content-Length", "Transfer-Encoding"}

// strip takes out what a client must not say. Some frameworks take an underscore for a hyphen, so
// the gate does as well.
func (g *Gate) strip(h http.Header) {
	for name := range h {
		hyphened := name
		if strings.Contains(name, "_") {
			hyphened = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		}
		if hyphened == fence.Header || g.opts.Preset == Kubernetes && strings.HasPrefix(hyphened, "X-Remote-") {
			delete(h, name)
			continue
		}
		if hyphened != name && (httpwrite.Override(hyphened) || slices.Contains(framing, hyphened)) {
			delete(h, name)
		}
	}
}

// answered looks at the upstream's answer before the client does.
func (g *Gate) answered(resp *http.Response) error {
	x := exchangeOf(resp.Request.Context())
	if resp.StatusCode != http.StatusSwitchingProtocols || x.o == nil {
		return nil
	}
	c, ok := resp.Body.(interface {
		Read(p []byte) (int, error)
		Write(p []byte) (int, error)
		Close() error
	})
	if !ok {
		return errors.New("the upstream switches protocols on a connection that can't be written to")
	}
	resp.Body = upgraded{c, x}
	return nil
}

// failed answers a request that got no answer from the upstream.
func (g *Gate) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	no := &refusal{code: http.StatusBadGateway, Error: "upstream_failed", Message: "the upstream did not answer: " + err.Error()}
	cause := context.Cause(r.Context())
	switch {
	case errors.Is(cause, errShort) && x.o != nil:
		no = g.tooLate(x.o)
	case errors.Is(cause, errTwice), errors.Is(cause, errShared):
		no.Message = "the upstream did not answer: " + cause.Error()
	case errors.Is(cause, errCut), x.overdue():
		no = x.o.refusal("cut", "the write was cut since this instance's term of %s ends")
		w.Header().Set("Connection", "close") // its deadlines are those of a cut
	case x.stalled.Load():
		no.code, no.Error = http.StatusRequestTimeout, "client_stalled"
		no.Message = "the rest of the request did not come within " + g.opts.Stall.String()
	}
	if x.o != nil {
		no.Name, no.Token = x.o.seq.Name, x.o.seq.Token
		no.Outcome = unknown
		if !x.sent.Load() {
			no.Outcome = notDone
			if no.Error == "upstream_failed" {
				no.Error = "upstream_unreachable"
			}
		}
	}
	g.refuse(w, no)
}

// buffers are those that bodies are copied through.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
