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
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/fence"
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
	return &upstream{transport(both), transport(one)}
}

func (u *upstream) close() {
	u.plain.CloseIdleConnections()
	u.upgrades.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	if x.o != nil {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: x.connected}))
	}
	if r.Header.Get("Upgrade") != "" {
		return u.upgrades.RoundTrip(r)
	}
	return u.plain.RoundTrip(r)
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
	forwarded(p)
	g.strip(p.Out.Header)
	if x := exchangeOf(p.In.Context()); x.o != nil {
		p.Out.Header.Set(fence.Header, x.o.text)
	}
	if !upgrade(p.In) { // to h2c: the requests after it would not pass here
		p.Out.Header.Del("Upgrade")
		p.Out.Header.Del("Connection")
	}
}

// forwarded adds this hop to what was known of the client's request, as if the gate weren't there to be noticed.
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

// strip takes out what a client must not say. Some frameworks take an underscore for a hyphen, so the gate does as well.
func (g *Gate) strip(h http.Header) {
	for name := range h {
		hyphened := name
		if strings.Contains(name, "_") {
			hyphened = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		}
		if hyphened == fence.Header || g.opts.Kubernetes && strings.HasPrefix(hyphened, "X-Remote-") {
			delete(h, name)
			continue
		}
		for _, override := range overrides {
			if hyphened == override && hyphened != name {
				delete(h, name)
			}
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
	case errors.Is(cause, errShort):
		no = g.tooLate(x.o)
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
