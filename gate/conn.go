package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
)

// conn is a connection to the upstream. An upstream may answer before it has read the whole
// request, and end the connection. Sending the rest fails then, for which net/http throws the
// answer away. So a failure after a part of a request was sent is not returned: the answer is read,
// or reading fails, too. What follows an upgrade is written by another goroutine than the request.
type conn struct {
	net.Conn
	mu    sync.Mutex
	asked bool  // a request of HTTP/1 was begun, and a part of it was sent
	fresh bool  // a request of HTTP/1 is about to be sent
	err   error // why nothing can be sent any more
}

// begin is called before a request is sent on c, which is a connection of an [http.Transport], by
// HTTP/1.
func begin(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(*conn); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fresh = true
	}
}

// Write implements [io.Writer].
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil && c.fresh:
		return 0, c.err // the transport sends the request on another connection
	case c.err != nil:
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	if n > 0 && c.fresh {
		c.asked, c.fresh = true, false
	}
	if c.asked && !c.fresh && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		c.err = err
		return len(p), nil
	}
	return n, err
}

// CloseWrite tells the upstream that nothing more comes.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// dialConn has connections that dial makes be conns.
func dialConn(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
}
