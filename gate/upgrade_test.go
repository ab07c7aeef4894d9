package gate_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/gate"
)

// echo is a program that switches to a protocol in which each line is answered.
func echo(rw http.ResponseWriter, req *http.Request) {
	rw.Header().Set("Connection", "Upgrade")
	rw.Header().Set("Upgrade", req.Header.Get("Upgrade"))
	rw.WriteHeader(http.StatusSwitchingProtocols)
	c, r, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.Copy(c, r)
}

// socket is the client's end of an upgraded connection.
type socket struct {
	net.Conn
	r *bufio.Reader
}

// upgrade asks for an upgrade, and returns the status of the answer.
func upgrade(t *testing.T, c net.Conn, path, protocol string) (*socket, string) {
	t.Helper()
	s := &socket{c, bufio.NewReader(c)}
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(s.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return s, resp.Status
}

// says sends a line, and wants it back.
func (s *socket) says(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(s, line+"\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.r.ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

func (i *instance) upgrade(path string) (*socket, string) {
	i.w.T.Helper()
	c, err := i.server.dial(i.w.T.Context(), "", "")
	if err != nil {
		i.w.T.Fatal(err)
	}
	i.w.T.Cleanup(func() { _ = c.Close() })
	return upgrade(i.w.T, c, path, "websocket")
}

// An upgraded connection is a write for as long as it is there: it is cut when the gate closes, at once. One that is named as a
// read goes on.
func TestUpgrade(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setServe(echo)
		i := w.instance(gate.Options{Reads: []string{"GET /live"}, Drain: time.Hour})
		if _, status := i.upgrade("/socket"); status != "503 Service Unavailable" {
			t.Errorf("%s", status)
		}
		live, _ := i.upgrade("/live")
		live.says(t, "before")
		h := i.hold()
		token := h.lease.Token().String()
		s, status := i.upgrade("/socket")
		if got := w.requests(); status != "101 Switching Protocols" || got != "GET /live -, GET /socket "+token {
			t.Errorf("%s, %s", status, got)
		}
		s.says(t, "hello")
		time.Sleep(time.Hour) // without a word
		s.says(t, "still there")
		closed := time.Now()
		h.close(errors.New("stop"))
		if _, err := s.r.ReadByte(); !errors.Is(err, io.EOF) || time.Since(closed) > 0 {
			t.Errorf("%v after %v", err, time.Since(closed))
		}
		<-h.returned
		if s := i.gate.State(); s.Cut != 1 {
			t.Errorf("%+v", s)
		}
		live.says(t, "after")
	})
}

// What a client sends over an upgraded connection after the end of the term is not taken on, though no timer has fired yet.
func TestUpgradePausedPastTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setServe(echo)
		i := w.instance(gate.Options{})
		i.hold()
		s, _ := i.upgrade("/socket")
		s.says(t, "in time")
		i.Clk.Pause()
		time.Sleep(validity)
		_, _ = io.WriteString(s, "too late\n")
		if got, err := s.r.ReadString('\n'); err == nil {
			t.Errorf("%q", got)
		}
		synctest.Wait()
		i.Clk.Resume()
	})
}

// An offer to go on in HTTP/2, in which further requests would come unseen, is not passed on.
func TestOfferOfHTTP2IsNotPassedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setServe(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header["Upgrade"] != nil || r.Header["Http2-Settings"] != nil || strings.Contains(strings.Join(r.Header["Connection"], ""), "pgrade") {
				t.Errorf("%v", r.Header)
			}
			_, _ = io.WriteString(rw, "an answer")
		})
		i := w.instance(gate.Options{})
		i.expect("GET", "/", "200", "GET / -", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA")
	})
}
