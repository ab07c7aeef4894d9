package kubernetes

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/clock"
)

// Client returns a client for [New]: one without a limit on requests, over the connections of
// [TransportFor]. It does no network I/O. The config stays as it is.
func Client(config *rest.Config) (*coordination.CoordinationV1Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	transport, err := TransportFor(config)
	if err != nil {
		return nil, err
	}
	return coordination.NewForConfigAndClient(config, &http.Client{Transport: transport, Timeout: config.Timeout})
}

// TransportFor is [rest.TransportFor] for requests that must not hang on a connection that died in
// silence. It has up to four connections of HTTP/2, and a request takes one that answers. See
// "Connections" in the doc of the package. It does no network I/O.
func TransportFor(config *rest.Config) (http.RoundTripper, error) {
	l := &lanes{clock: clock.System()}
	for range maxLanes {
		c := rest.CopyConfig(config)
		if c.Dial == nil {
			// Client-go's own.
			c.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		t, err := rest.TransportFor(c) // another one each time, since none has a Dial in common
		if err != nil {
			return nil, err
		}
		l.all = append(l.all, &lane{transport: t})
	}
	return l, nil
}

const (
	maxLanes = 4

	// overdue is how long a request waits for its answer until others avoid its connection, for as
	// long as another one is better. A network that takes longer for each answer is given all
	// connections.
	overdue = 500 * time.Millisecond

	// opening is how long a new connection is waited for until another one is opened.
	opening = 2 * time.Second

	// suspicion is how long a connection is avoided on which a request ended that had no answer.
	// After it, or when no other is better, one more request tries it: HTTP/2's own pings have
	// ended by then what is dead, or will.
	suspicion = 10 * time.Second

	// beside is how long a connection may take to be opened beside a late one.
	beside = 30 * time.Second
)

// lanes are connections to one server. Those in use come first: the next one is opened when no
// answer is to be expected soon on any of them.
type lanes struct {
	clock clock.Clock

	mu     sync.Mutex
	all    []*lane
	used   int           // of them
	opened clock.Instant // when the last one was
	// Of the requests that open connections beside late ones: one for each but the first, at most.
	ends []func()
}

// lane is one connection, by HTTP/2; its fields are guarded by the lanes' mutex.
type lane struct {
	transport http.RoundTripper
	waiting   map[*http.Request]clock.Instant // when they were sent; those without an answer
	suspect   clock.Instant                   // until when it is avoided
	sent      clock.Instant                   // when it had its last request
	known     bool                            // it has answered
}

// RoundTrip implements [http.RoundTripper].
func (l *lanes) RoundTrip(req *http.Request) (*http.Response, error) {
	lane := l.take(req)
	res, err := lane.transport.RoundTrip(req)
	l.answered(lane, req, err == nil)
	if err == nil {
		res.Body = &body{ReadCloser: res.Body, lanes: l, lane: lane, heard: l.clock.Now()}
	}
	return res, err
}

// take returns the connection for a request.
func (l *lanes) take(req *http.Request) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	var best *lane
	for _, lane := range l.all[:l.used] {
		if best == nil || lane.doubt(now) < best.doubt(now) || lane.doubt(now) == best.doubt(now) && lane.sent < best.sent {
			best = lane
		}
	}
	switch {
	case best == nil:
		best = l.open(now)
	case best.doubt(now) == 0 || !l.spare(now):
	case best.doubt(now) == late:
		// And may answer: where the network is slow a new one takes three times as long.
		l.openBeside(req, now)
	default:
		best = l.open(now)
	}
	best.sent, best.waiting[req] = now, now
	return best
}

// open takes one more connection into use.
func (l *lanes) open(now clock.Instant) *lane {
	lane := l.all[l.used]
	lane.waiting = map[*http.Request]clock.Instant{}
	l.used, l.opened = l.used+1, now
	return lane
}

// openBeside opens one more connection by a request of its own, to the server of req. Any answer
// will do.
func (l *lanes) openBeside(req *http.Request, now clock.Instant) {
	ctx, cancel := clock.WithTimeout(context.Background(), l.clock, beside)
	hello, err := http.NewRequestWithContext(ctx, http.MethodGet, (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: "/version"}).String(), nil)
	if err != nil { // no request of req's URL could be sent either
		cancel()
		return
	}
	lane := l.open(now)
	lane.sent, lane.waiting[hello] = now, now
	done := make(chan struct{})
	l.ends = append(l.ends, func() { cancel(); <-done })
	go func() {
		defer close(done)
		defer cancel()
		res, err := lane.transport.RoundTrip(hello)
		l.answered(lane, hello, err == nil)
		if err == nil {
			_ = res.Body.Close()
		}
	}()
}

// spare reports whether there is another connection, and none that is being opened.
func (l *lanes) spare(now clock.Instant) bool {
	return l.used < len(l.all) && (l.all[l.used-1].known || now.Sub(l.opened) >= opening)
}

// How little an answer is to be expected soon.
const (
	suspect = 1 + iota // a request ended without one
	late               // one waits for it
	unknown            // there was none yet
)

// doubt is how little an answer is to be expected soon; 0 for a good connection.
func (l *lane) doubt(now clock.Instant) int {
	if !l.known && (len(l.waiting) > 0 || now < l.suspect) {
		return unknown
	}
	for _, sent := range l.waiting {
		if now.Sub(sent) >= overdue {
			return late
		}
	}
	if now < l.suspect {
		return suspect
	}
	return 0
}

// answered takes note of how a request ended on its connection.
func (l *lanes) answered(lane *lane, req *http.Request, well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	lane.judge(now, well, lane.waiting[req])
	delete(lane.waiting, req)
}

// judge takes note of whether there was something to hear on a connection, or nothing since then.
func (l *lane) judge(now clock.Instant, well bool, since clock.Instant) {
	switch {
	case well:
		l.suspect, l.known = 0, true
	case now.Sub(since) >= overdue:
		l.suspect = now.Add(suspicion)
	}
}

// body is that of an answer. A watch that is given up after a silence says as little for its
// connection as a request without an answer.
type body struct {
	io.ReadCloser
	lanes *lanes
	lane  *lane

	mu    sync.Mutex
	heard clock.Instant // something, last
	ended bool
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.note(n > 0 || errors.Is(err, io.EOF), errors.Is(err, io.EOF))
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.note(false, true)
	return b.ReadCloser.Close()
}

// note takes note of what a call found out.
func (b *body) note(well, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || !well && !ended {
		return
	}
	b.lanes.mu.Lock()
	defer b.lanes.mu.Unlock()
	now := b.lanes.clock.Now()
	b.lane.judge(now, well, b.heard)
	b.heard, b.ended = now, ended
}

// CloseIdleConnections closes the connections without requests, and gives up those that are being
// opened beside late ones.
func (l *lanes) CloseIdleConnections() {
	l.mu.Lock()
	ends := l.ends
	l.ends = nil
	l.mu.Unlock()
	for _, end := range ends {
		end()
	}
	for _, lane := range l.all {
		utilnet.CloseIdleConnectionsFor(lane.transport)
	}
}
