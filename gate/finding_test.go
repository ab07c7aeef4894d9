package gate_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
)

// A query arrives as it was sent, or the request is a write.
func TestFinding_G5_QueriesPassByteForByte(t *testing.T) {
	arrived := make(chan string, 64) // of tests that fail, too
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.RequestURI }))
	defer upstream.Close()
	leader := serve(t, gate.Options{Upstream: parse(t, upstream.URL)}, nil)
	follower := standby(t, gate.Options{Upstream: parse(t, upstream.URL)})
	for target, read := range map[string]bool{
		"/pay?note=50%&amount=1&z=1&cur=a;b":     false,
		"/pay?amount=1;_method=DELETE":           false,
		"/pay?a=%zz":                             false,
		"/pay?z=1&a=%7e&b=+&c=%20&&d&=e&%41=%2f": true,
		"/pay?":                                  true,
		"/pay?_METHOD=get":                       true,
		"/a%2fb%41?q=1":                          true,
	} {
		request := " " + target + " HTTP/1.1\r\nHost: gate\r\nContent-Length: 0\r\n\r\n"
		for method, url := range map[string]string{"POST": leader.server.URL, "GET": leader.server.URL, "HEAD": follower.URL} {
			if method == "HEAD" && !read {
				if got := tell(t, url, method+request); got != "503" {
					t.Errorf("%s %s through a standby: %s", method, target, got)
				}
				continue
			}
			if got := tell(t, url, method+request); got != "200" {
				t.Errorf("%s %s: %s", method, target, got)
				continue
			}
			if got := <-arrived; got != target {
				t.Errorf("%s %s arrived as %s", method, target, got)
			}
		}
	}
}

// A parameter that a program may take for the method makes a write of a request, however it is spelled.
func TestFinding_G7_MethodParameters(t *testing.T) {
	table(t, gate.Options{Reads: []string{"POST /search"}},
		"!GET /a?_method[]=DELETE", "!GET /a?.method=DELETE", "!GET /a?%2Emethod=delete", "!GET /a?_method=+DELETE",
		"!GET /a?x=1&_method=GET&_method=PUT", "!POST /search?_method%5b%5d=x", "GET /a?_methods=DELETE", "GET /a?my_method=DELETE")
}

// flaky is a program that reads one request of each connection, answers it, reads another, and hangs up. seen has what it has read, with
// the numbers of the connections.
func flaky(t *testing.T) (url string, seen func() []string) {
	var mu sync.Mutex
	var all []string
	conns := 0
	url = accept(t, func(c net.Conn) {
		mu.Lock()
		conns++
		number := conns
		mu.Unlock()
		in := bufio.NewReader(c)
		for n := range 2 {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			all = append(all, fmt.Sprint(number, " ", r.Method, " ", r.URL.Path))
			mu.Unlock()
			if n == 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})
	return url, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// Go's transport sends a request again when its connection breaks, if it takes it for one that may be done twice.
func TestFinding_G7_NoWriteIsSentTwice(t *testing.T) {
	for _, c := range []struct {
		method string
		header []string
	}{
		{"POST", []string{"Idempotency-Key", "7"}},
		{"DELETE", []string{"X-Idempotency-Key", "7"}},
		{"GET", nil},
		{"HEAD", nil},
	} {
		// The transport uses no connection again whose writer is 50 ms late to say that it has sent the request.
		for n := 0; !sentOnce(t, c.method, c.header); n++ {
			if n == 100 {
				t.Fatalf("%s: it never comes by the connection of the request before it", c.method)
			}
		}
	}
}

// sentOnce sees that a write is not sent again. It reports whether the write came by the connection of a request before it.
func sentOnce(t *testing.T, method string, header []string) bool {
	t.Helper()
	url, seen := flaky(t)
	s := serve(t, gate.Options{Upstream: parse(t, url), Writes: []string{"GET /write"}}, nil)
	defer func() {
		s.close()
		<-s.done
		s.gate.Close() // the connections of the program end with it
	}()
	if a := send(s.server.Client(), "GET", s.server.URL+"/warm", nil); a.code != http.StatusOK {
		t.Fatal(a)
	}
	a := send(s.server.Client(), method, s.server.URL+"/write", nil, header...)
	got := strings.Join(seen(), ", ")
	if got == "1 GET /warm, 2 "+method+" /write" {
		return false
	}
	if got != "1 GET /warm, 1 "+method+" /write" {
		t.Errorf("%s: the program was asked %s", method, got)
	}
	if a.code != http.StatusBadGateway || method != "HEAD" && (a.body.Outcome != "unknown" || !strings.Contains(a.body.Message, "not sent twice")) {
		t.Errorf("%s: %s: %s", method, a, a.text)
	}
	return true
}

// Keys that prove nothing are refused.
func TestFinding_G7_EmptyKeysAreNone(t *testing.T) {
	if _, err := gate.New(gate.Options{Upstream: parse(t, "http://127.0.0.1:1"), Keys: &fence.Keys{}}); err == nil || !strings.Contains(err.Error(), "Keys") {
		t.Error(err)
	}
}
