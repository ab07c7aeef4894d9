package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
)

// wire is a connection to a server of any kind. It does as little as can be: the server is what is measured.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte // the last request
	body []byte // of the last answer

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

// reply is an answer over HTTP: its body, until the next one, and of its header what says which term was granted.
type reply struct {
	location, sequencer, secret string
	body                        []byte
}

// ask sends a request over HTTP; headers are lines. It is an error if the status is not one of 2xx.
func (w *wire) ask(method, path, headers, body string) (reply, error) {
	if w.fresh {
		w.close()
		if err := w.connect(); err != nil {
			return reply{}, err
		}
	}
	w.out = append(append(append(append(append(w.out[:0], method...), ' '), path...), " HTTP/1.1\r\nHost: "...), w.addr...)
	w.out = append(append(append(w.out, "\r\n"...), headers...), "Content-Length: "...)
	w.out = append(append(strconv.AppendInt(w.out, int64(len(body)), 10), "\r\n\r\n"...), body...)
	if _, err := w.conn.Write(w.out); err != nil {
		return reply{}, err
	}
	r, status, err := w.answer()
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, r.body)
	}
	return r, err
}

// answer reads an answer. net/http's own reader takes longer than some of the servers.
func (w *wire) answer() (r reply, status int, err error) {
	line, err := w.in.ReadSlice('\n')
	if err != nil {
		return r, 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return r, 0, fmt.Errorf("%q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return r, 0, fmt.Errorf("%q", line)
	}
	length, chunked := 0, false
	for {
		if line, err = w.in.ReadSlice('\n'); err != nil {
			return r, 0, err
		}
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		switch {
		case len(name) == 0:
			r.body, err = w.read(length, chunked)
			return r, status, err
		case is(name, "Content-Length"):
			length, err = strconv.Atoi(string(value))
		case is(name, "Transfer-Encoding"):
			chunked = true
		case is(name, "Location"):
			r.location = string(value)
		case is(name, "Leasehold-Sequencer"):
			r.sequencer = string(value)
		case is(name, "Leasehold-Secret"):
			r.secret = string(value)
		}
		if err != nil {
			return r, 0, err
		}
	}
}

func is(name []byte, as string) bool {
	return len(name) == len(as) && strings.EqualFold(string(name), as)
}

// read reads the body of an answer.
func (w *wire) read(length int, chunked bool) ([]byte, error) {
	if chunked {
		text, err := io.ReadAll(httputil.NewChunkedReader(w.in))
		if err == nil {
			_, err = w.in.Discard(len("\r\n"))
		}
		return text, err
	}
	w.body = slices.Grow(w.body[:0], length)[:length]
	_, err := io.ReadFull(w.in, w.body)
	return w.body, err
}
