package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// wire is a connection to a server of any kind. It does as little as can be: the server is what is measured.
type wire struct {
	conn net.Conn
	in   *bufio.Reader

	ctx   context.Context //nolint:containedctx // the benchmark's
	addr  string
	from  net.Addr // connections come from this address, if set: ports are scarce
	fresh bool     // each request over HTTP has a connection of its own
}

func dial(ctx context.Context, addr string) (*wire, error) {
	w := &wire{ctx: ctx, addr: addr}
	return w, w.connect()
}

func (w *wire) connect() (err error) {
	d := net.Dialer{LocalAddr: w.from}
	if w.conn, err = d.DialContext(w.ctx, "tcp", w.addr); err == nil {
		w.in = bufio.NewReader(w.conn)
	}
	return err
}

func (w *wire) close() { _ = w.conn.Close() }

// reply is an answer over HTTP.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request over HTTP; headers are lines. It is an error if the status is not one of 2xx.
func (w *wire) ask(method, path, headers, body string) (reply, error) {
	if w.fresh {
		w.close()
		if err := w.connect(); err != nil {
			return reply{}, err
		}
	}
	_, err := fmt.Fprintf(w.conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		method, path, w.conn.RemoteAddr(), headers, len(body), body)
	if err != nil {
		return reply{}, err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %s", method, path, resp.Status, text)
	}
	return reply{resp.StatusCode, resp.Header, text}, err
}
