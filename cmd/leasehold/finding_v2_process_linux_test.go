package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// A server that is ended answers every request on the connections that it has: none is reset.
// It keeps connections for half a second more, and each client here is to ask again within that.
func TestFinding_V2_ACleanStopAnswersAll(t *testing.T) { stalltest.Run(t, cleanStopAnswersAll) }

func cleanStopAnswersAll(t testing.TB) {
	const askers, waiters = 60, 22
	p := newPlace(t)
	s := p.serve()
	if status, text := s.ask(http.MethodPost, "/v1/leases/job", `{"ttl": 600}`, ""); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	addr := strings.TrimPrefix(s.url, "http://")
	var answered, unanswered atomic.Int64
	var clients sync.WaitGroup
	begin := func(i int, request string, once bool) {
		conn, err := net.Dial("tcp", addr) //nolint:noctx // it is on this machine
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			defer func() { _ = conn.Close() }()
			in := bufio.NewReader(conn)
			for last := false; !last; {
				if _, err := io.WriteString(conn, request); err != nil {
					unanswered.Add(1)
					return
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					unanswered.Add(1)
					t.Logf("client %d: %v", i, err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				answered.Add(1)
				last = resp.Close || once
				time.Sleep(time.Duration(i%5) * time.Millisecond)
			}
		})
	}
	body := `{"wait": 60}`
	for i := range waiters {
		begin(i, fmt.Sprintf("POST /v1/leases/job HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body), true)
	}
	for i := range askers {
		begin(i, "GET /v1/leases/job HTTP/1.1\r\nHost: localhost\r\n\r\n", false)
	}
	eventually(t, "all are at it", func() bool {
		_, text := s.ask(http.MethodGet, "/metrics", "", "")
		return answered.Load() > 2*askers && strings.Contains(text, fmt.Sprintf("\nleasehold_waiters %d\n", waiters))
	})
	s.signal(syscall.SIGTERM)
	if code := s.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	clients.Wait()
	if n := unanswered.Load(); n > 0 {
		t.Errorf("%d requests were not answered, %d were", n, answered.Load())
	}
}
