package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// A peer that resets connections is a figure: the clients that it serves do all their pairs.
func TestAPeerThatResetsIsAFigure(t *testing.T) {
	const clients, reset, each = 6, 2, 5
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // for the length of a test
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answerOrReset(conn, n < reset) })
		}
	})
	var all []locker
	for range clients {
		w, err := dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		all = append(all, rdlmClient{w})
	}
	r := race(all, clients*each, false)
	if r.reset != reset || !isReset(r.by) || r.err != nil || len(r.took) != (clients-reset)*each {
		t.Errorf("%d pairs, %d clients reset by %v, and %v: want %d, %d and no error", len(r.took), r.reset, r.by, r.err, (clients-reset)*each, reset)
	}
	for _, c := range all {
		c.(rdlmClient).close()
	}
	_ = l.Close()
	serving.Wait()
}

// answerOrReset answers the requests of a connection, or resets it at the first one.
func answerOrReset(conn net.Conn, reset bool) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0) // else it is closed, once what was sent is read
			return
		}
		_ = req.Body.Close()
		if _, err := fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nLocation: http://here/locks/one\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}
