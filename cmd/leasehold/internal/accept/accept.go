// Package accept lets a server take so many connections and no more, of all clients and of each
// one, and keeps none whose client doesn't read what it is sent.
package accept

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/clock"
)

// Options of a [Listener].
type Options struct {
	Clock clock.Clock
	// Most is how many connections there may be at a time, 0 for any number.
	Most int
	// PerClient is how many of one client, 0 for any number. A client is an IPv4 address, or a /64
	// of IPv6.
	PerClient int
	// Stall is how long a client may take for each 64 KiB that it is sent.
	Stall time.Duration
	// Log is told of connections that are closed at once, once a minute.
	Log *slog.Logger
}

// The limits, as they are named in metrics and in the log.
const (
	limitAll    = "all"
	limitClient = "client"
)

// Listener accepts connections within limits. What is beyond them is closed at once, before a byte
// is read or sent: an answer, over TLS above all, costs what the limit is to save. It is a
// [prometheus.Collector].
type Listener struct {
	net.Listener
	opts Options
	pace *pace

	finishing atomic.Bool
	done      chan struct{} // closed when it has finished
	close     sync.Once
	until     atomic.Int64 // the latest end of that, as Unix has it, in nanoseconds

	mu      sync.Mutex
	open    int
	of      map[netip.Prefix]int
	refused map[string]float64
	said    clock.Instant // when the log was told last
}

// New returns a listener that accepts from l.
func New(l net.Listener, opts Options) *Listener {
	return &Listener{Listener: l, opts: opts, pace: newPace(opts.Clock), of: map[netip.Prefix]int{}, refused: map[string]float64{}, done: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, l.finished(err)
		}
		l.extend()
		who := client(c.RemoteAddr())
		if limit := l.enter(who); limit != "" {
			_ = c.Close() // nobody is told
			l.say(limit, who)
			continue
		}
		if !l.finishing.Load() {
			l.pace.take()
		}
		mine := &conn{Conn: c, l: l}
		since := l.opts.Clock.Now()
		mine.leave = sync.OnceFunc(func() {
			if !mine.hungUp.Load() {
				l.pace.give(l.opts.Clock.Now().Sub(since))
			}
			l.leave(who)
		})
		return mine, nil
	}
}

// ErrFinished is the error of an Accept after [Listener.Finish].
var ErrFinished = errors.New("no more connections are accepted")

const (
	// Without a new connection, before a listener that finishes is closed.
	quiet  = 20 * time.Millisecond
	finish = time.Second // that it takes at most
)

// Finish has the listener accept the connections that its clients have made already, and then be
// closed: Accept returns [ErrFinished]. It blocks until that has happened, for 1 s at most, or
// until ctx is done. A client that connects at the very moment of the closing may still be reset.
func (l *Listener) Finish(ctx context.Context) {
	l.until.Store(l.opts.Clock.Wall().Add(finish).UnixNano())
	l.finishing.Store(true)
	l.extend()
	ctx, cancel := clock.WithTimeout(ctx, l.opts.Clock, finish)
	defer cancel()
	select {
	case <-l.done:
	case <-ctx.Done():
	}
}

// extend has a listener that finishes wait a little longer for another connection.
func (l *Listener) extend() {
	d, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !l.finishing.Load() {
		return
	}
	end := l.opts.Clock.Wall().Add(quiet)
	if last := time.Unix(0, l.until.Load()); last.Before(end) {
		end = last
	}
	if !ok || d.SetDeadline(end) != nil {
		_ = l.Listener.Close()
	}
}

// finished is the error of an Accept.
func (l *Listener) finished(err error) error {
	if !l.finishing.Load() {
		return err
	}
	_ = l.Listener.Close() // it accepts nothing more
	l.close.Do(func() { close(l.done) })
	return ErrFinished
}

// enter counts a connection, or returns which limit it is beyond.
func (l *Listener) enter(who netip.Prefix) (limit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.opts.Most > 0 && l.open >= l.opts.Most:
		limit = limitAll
	case l.opts.PerClient > 0 && l.of[who] >= l.opts.PerClient:
		limit = limitClient
	default:
		l.open++
		l.of[who]++
		return ""
	}
	l.refused[limit]++
	return limit
}

func (l *Listener) leave(who netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[who]--; l.of[who] == 0 {
		delete(l.of, who)
	}
}

// say tells the log of a connection that was refused, unless it was told of one within the last
// minute.
func (l *Listener) say(limit string, who netip.Prefix) {
	l.mu.Lock()
	now := l.opts.Clock.Now()
	quiet := l.said != 0 && now.Sub(l.said) < time.Minute
	if !quiet {
		l.said = now
	}
	open, most := l.open, l.opts.Most
	if limit == limitClient {
		open, most = l.of[who], l.opts.PerClient
	}
	l.mu.Unlock()
	if !quiet {
		l.opts.Log.Warn("connections are refused: there are too many", "limit", limit, "most", most, "open", open, "client", who)
	}
}

// client is whom a connection is counted for. One that has no address, as over a Unix socket, is
// everybody's.
func client(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	const network = 64 // of IPv6: one site's
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = network
	}
	p, err := ip.Prefix(bits)
	if err != nil { // never: the bits are the address's
		return netip.Prefix{}
	}
	return p
}

var (
	descOpen    = prometheus.NewDesc("leasehold_connections", "Connections that are open.", nil, nil)
	descRefused = prometheus.NewDesc("leasehold_connections_refused_total", "Connections that were closed at once, by the limit that they were beyond: all, or client for one client's.", []string{"limit"}, nil)
)

// Describe implements [prometheus.Collector].
func (l *Listener) Describe(c chan<- *prometheus.Desc) {
	c <- descOpen
	c <- descRefused
}

// Collect implements [prometheus.Collector].
func (l *Listener) Collect(c chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(l.open))
	for _, limit := range []string{limitAll, limitClient} {
		c <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, l.refused[limit], limit)
	}
}

// conn is a connection that is counted.
type conn struct {
	net.Conn
	l        *Listener
	leave    func()
	answered atomic.Bool // something was sent since the last was read
	ended    atomic.Bool // its client sends no more
	hungUp   atomic.Bool // its client did so before it was answered
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	ours := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)
	switch {
	case n > 0:
		c.answered.Store(false)
	case err != nil && !ours:
		c.ended.Store(true)
		if !c.answered.Load() {
			c.hungUp.Store(true)
		}
	}
	return n, err
}

// piece is what a client has to take within [Options.Stall].
const piece = 64 << 10

// Write implements [net.Conn]. It fails when the client doesn't read, so that the connection is
// closed.
func (c *conn) Write(p []byte) (n int, err error) {
	c.answered.Store(true) // before the client can close on it
	if c.ended.Load() {
		c.hungUp.Store(true) // what it is sent comes too late
	}
	for {
		part := p[n:min(n+piece, len(p))]
		if err := c.SetWriteDeadline(c.l.opts.Clock.Wall().Add(c.l.opts.Stall)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(part)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// CloseWrite is for net/http, which ends an answer by it before it closes what the client has not
// stopped sending on: otherwise the answer would be lost.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	err := c.Conn.Close() // first: a place is free when there is one
	c.leave()
	return err
}
