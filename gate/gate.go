package gate

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// Preset is a kind of upstream whose requests and answers the gate knows.
type Preset string

// Kubernetes is the preset for a Kubernetes API server. Creating an access, token or rules review
// is a read; exec, attach, portforward and proxy are writes; refusals can be read by its clients;
// and the headers by which an authenticating proxy names a user to the API server are taken out of
// requests.
const Kubernetes Preset = "kubernetes"

// Options of a [Gate]. Upstream is required.
type Options struct {
	// Upstream is the address of the program. Its scheme is http, https, or h2c, which is HTTP/2
	// without TLS. A path in it is put before those of requests.
	Upstream *url.URL

	// TLS is for an upstream with https: whom to trust, and a certificate of one's own, if the
	// upstream wants one.
	TLS *tls.Config

	// Dial, if set, connects to the upstream, to a Unix socket for instance.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Name is the name of the lease, for refusals while there is no term.
	Name string

	// Reads are requests that change nothing although their method may, such as "POST /search/**".
	// Such a request may also have a body, and be upgraded, to WebSocket for instance, without a
	// lease.
	Reads []string

	// Writes are requests that change something although their method says that they don't, such as
	// "GET /jobs/*/run". GET covers HEAD, too. Writes take precedence over Reads.
	Writes []string

	// Preset is what the gate knows of the upstream beside Reads and Writes: nothing by default, or
	// [Kubernetes].
	Preset Preset

	// MinLeft is the least remaining time of the term at which a write is forwarded. The default is
	// 1 s. It has to be less than what a term has left when it is renewed, or writes are refused
	// before each renewal. By the defaults of package lease that is a little under half of the TTL.
	MinLeft time.Duration

	// CutBefore is how long before the end of validity writes in flight are cut: a quarter of
	// MinLeft by default, and less than MinLeft.
	CutBefore time.Duration

	// Drain is how long writes in flight may go on when the gate closes before its validity ends: 5
	// s by default. Upgraded connections don't, since they don't end by themselves.
	Drain time.Duration

	// Stall is how long a client may block the gate by not sending the next part of a request's
	// body, or not reading the next part of the answer. The default is a minute.
	Stall time.Duration

	// Keys, unless nil, sign the sequencers: see [fence.NewKeys].
	Keys *fence.Keys

	// Holder, if set, returns the holder of the lease, for refusals. It must not block.
	Holder func() Holder

	// Clock is where time comes from; [clock.System] by default. Terms have to be measured by the
	// same.
	Clock clock.Clock

	// Log gets a line for each write that is cut, and for each failure in the middle of an answer.
	// By default there is no log.
	Log *slog.Logger
}

// Holder is the holder of the lease, as far as known.
type Holder struct {
	Owner string // owner id; "" when nobody is known to hold it
	Token fence.Token
	Since time.Time // by the holder's wall clock; for people
	Note  string    // why holding is blocked: a pause, for instance

	// Retry is the time after which this instance may take writes; 0 when that is unknown.
	Retry time.Duration
}

// Gate is a reverse proxy in front of one upstream. It is an [http.Handler], closed for writes
// until [Gate.Open] is called. It is safe for concurrent use.
//
// Its [http.Server] needs a ReadHeaderTimeout and an IdleTimeout against slow clients. It must not
// have a ReadTimeout or a WriteTimeout, which would cut streams.
type Gate struct {
	opts  Options
	clk   clock.Clock
	rules rules
	up    *upstream
	proxy *httputil.ReverseProxy

	mu  sync.Mutex
	now *opening // nil while the gate is closed

	reads, writes, refused, cut atomic.Uint64
}

// New returns a gate that is closed for writes. It does no I/O. The error names the option that is
// wrong. Close the gate when it is done with.
func New(opts Options) (*Gate, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	g := &Gate{opts: opts, clk: opts.Clock}
	var err error
	if g.rules, err = newRules(opts); err != nil {
		return nil, err
	}
	g.up = newUpstream(opts)
	g.proxy = g.newProxy()
	return g, nil
}

// Close closes the connections to the upstream that are idle. It doesn't end requests: shut down
// the server first.
func (g *Gate) Close() { g.up.close() }

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	if o.Upstream == nil || o.Upstream.Host == "" {
		return fmt.Errorf("gate: Upstream %v: want a URL with a host, as http://127.0.0.1:8080", o.Upstream)
	}
	if s := o.Upstream.Scheme; s != "http" && s != "https" && s != schemeH2C {
		return fmt.Errorf("gate: Upstream %s: scheme %q: want http, https or h2c", o.Upstream.Redacted(), s)
	}
	if o.Upstream.User != nil || o.Upstream.RawQuery != "" || o.Upstream.Fragment != "" {
		return fmt.Errorf("gate: Upstream %s: want no user, no query and no fragment", o.Upstream.Redacted())
	}
	if o.Preset != "" && o.Preset != Kubernetes {
		return fmt.Errorf("gate: Preset %q: want none, or %q", o.Preset, Kubernetes)
	}
	for _, d := range []struct {
		field    string
		value    *time.Duration
		standard time.Duration
	}{
		{"MinLeft", &o.MinLeft, time.Second},
		{"CutBefore", &o.CutBefore, 0},
		{"Drain", &o.Drain, 5 * time.Second},
		{"Stall", &o.Stall, time.Minute},
	} {
		if *d.value < 0 {
			return fmt.Errorf("gate: %s %v: want a duration that is not negative", d.field, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if o.CutBefore == 0 {
		o.CutBefore = o.MinLeft / 4
	}
	if o.CutBefore >= o.MinLeft {
		return fmt.Errorf("gate: CutBefore %v: want less than MinLeft, %v, or each write is cut as it begins", o.CutBefore, o.MinLeft)
	}
	if o.Keys != nil {
		if _, err := o.Keys.Sign(fence.Sequencer{Name: "name", Holder: "holder", Token: 1}); err != nil {
			return fmt.Errorf("gate: Keys: %w", err)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// ServeHTTP implements [http.Handler]. It blocks until the request is answered, or was cut.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		g.refuse(w, &refusal{code: http.StatusNotImplemented, Error: "not_supported", Message: "CONNECT: this is no forward proxy"})
		return
	}
	x, ctx := g.newExchange(w, r)
	defer x.end()
	if g.rules.write(r) {
		if no := g.enter(x); no != nil {
			g.refused.Add(1)
			g.refuse(w, no)
			return
		}
		defer g.leave(x)
		g.writes.Add(1)
	} else {
		g.reads.Add(1)
	}
	r = r.WithContext(ctx)
	if x.body {
		r.Body = newRequestBody(r, x)
	}
	g.proxy.ServeHTTP(response{w, x}, r)
}

// State is what a gate does.
type State struct {
	Open     bool            // for writes
	Term     fence.Sequencer // while it is open
	Left     time.Duration   // of the term, unless it is renewed
	InFlight int             // writes

	Reads, Writes, Refused, Cut uint64 // requests so far; writes include cut ones
}

// State returns what the gate does now. Open is false when a write that came now would be refused.
func (g *Gate) State() State {
	s := State{Reads: g.reads.Load(), Writes: g.writes.Load(), Refused: g.refused.Load(), Cut: g.cut.Load()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.now; o != nil {
		s.Left = o.term.Left()
		s.Open = !o.closing && s.Left >= g.opts.MinLeft
		s.Term, s.InFlight = o.seq, len(o.inFlight)
	}
	return s
}
