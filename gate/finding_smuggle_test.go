package gate_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
)

// smuggled is a write that hides in the body of another request.
var smuggled = "POST /smuggled HTTP/1.1\r\nHost: program\r\n" + fence.Header + ": v1;9;job;me\r\nContent-Length: 0\r\n\r\n"

// careless is a program that doesn't read the bodies of requests, and takes what is left on the connection for the next request.
type careless struct {
	url  string
	seen func() string // what it was asked, since it was asked for last: method, path and token, one to a line
}

// carelessPrograms are Python's own server, and one that does the same.
var carelessPrograms = map[string]func(t *testing.T) careless{"python": python, "go": unread}

const pythonServer = `
import http.server, sys
seen = []
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        text = b""
        if self.path == "/seen":
            text = "\n".join(seen).encode()
            seen.clear()
        else:
            seen.append(self.command + " " + self.path + " " + self.headers.get("Leasehold-Sequencer", "-"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
    do_GET = do_HEAD = do_OPTIONS = do_TRACE = do_POST = do_DELETE = answer
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
`

func python(t *testing.T) careless {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	cmd := exec.Command("python3", "-c", pythonServer)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var port int
	if _, err := fmt.Fscan(out, &port); err != nil {
		t.Fatal(err)
	}
	c := careless{url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c.seen = func() string {
		a := send(client, "GET", c.url+"/seen", nil)
		if a.code != http.StatusOK {
			t.Fatal(a)
		}
		return a.text
	}
	return c
}

func unread(t *testing.T) careless {
	var mu sync.Mutex
	var seen []string
	url := accept(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			mu.Lock()
			seen = append(seen, r.Method+" "+r.URL.Path+" "+cmp.Or(r.Header.Get(fence.Header), "-"))
			mu.Unlock()
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil || r.Close {
				return
			}
		}
	})
	return careless{url: url, seen: func() string {
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(seen, "\n")
		seen = nil
		return text
	}}
}

// standby is a gate on a real network that holds nothing.
func standby(t *testing.T, opts gate.Options) *httptest.Server {
	t.Helper()
	g, err := gate.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		g.Close()
	})
	return s
}

// tell sends text as it is, and returns the status of the answer.
func tell(t *testing.T, url, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: text[:strings.Index(text, " ")]})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer resp.Body.Close()
	return resp.Status[:3]
}

func withLength(method, headers string) string {
	return fmt.Sprintf("%s /page HTTP/1.1\r\nHost: gate\r\n%sContent-Length: %d\r\n\r\n%s", method, headers, len(smuggled), smuggled)
}

func chunked(method, headers, body string) string {
	text := method + " /page HTTP/1.1\r\nHost: gate\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\n"
	if body != "" {
		text += fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
	}
	return text + "0\r\n\r\n"
}

// The body of a request that only reads is a write to a program that doesn't expect one.
func TestFinding_G1_BodiesSmuggleNothingThroughAStandby(t *testing.T) {
	for name, start := range carelessPrograms {
		t.Run(name, func(t *testing.T) {
			program := start(t)
			plain := standby(t, gate.Options{Upstream: parse(t, program.url)})
			for _, c := range []struct{ text, want string }{
				{withLength("GET", ""), "503"},
				{withLength("HEAD", ""), "503"},
				{withLength("OPTIONS", ""), "503"},
				{withLength("TRACE", ""), "503"},
				{withLength("GET", "Expect: 100-continue\r\n"), "503"},
				{withLength("GET", "Upgrade: h2c\r\nConnection: Upgrade\r\n"), "503"},
				{withLength("GET", "Transfer_Encoding: chunked\r\n"), "503"},
				{chunked("GET", "", smuggled), "503"},
				{chunked("GET", "", ""), "503"}, // nobody knows beforehand that it is empty
				{chunked("GET", "Content-Length: 0\r\n", smuggled), "503"},
				{chunked("GET", "Trailer: X\r\n", smuggled), "503"},
				{"GET /page HTTP/1.1\r\nHost: gate\r\nTransfer-Encoding: chunked, identity\r\n\r\n" + smuggled, "501"},
				{"GET /page HTTP/1.1\r\nHost: gate\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n" + smuggled, "400"},
				{"CONNECT program:80 HTTP/1.1\r\nHost: program:80\r\n\r\n" + smuggled, "501"},
			} {
				if got := tell(t, plain.URL, c.text); got != c.want {
					t.Errorf("%q: %s, want %s", c.text, got, c.want)
				}
			}
			if seen := program.seen(); seen != "" {
				t.Errorf("the program was asked %q", seen)
			}
			// What follows a request without a body is another request, for the gate too.
			for _, text := range []string{
				"GET /page HTTP/1.1\r\nHost: gate\r\nContent-Length: 0\r\n\r\n" + smuggled,
				"GET /page HTTP/1.1\r\nHost: gate\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n" + smuggled,
				"GET /page HTTP/1.1\r\nHost: gate\r\nContent_Length: 2000\r\n\r\n" + smuggled,
				"GET /page HTTP/1.1\r\nHost: gate\r\nExpect: 100-continue\r\n\r\n" + smuggled,
			} {
				if got := tell(t, plain.URL, text); got != "200" {
					t.Errorf("%q: %s", text, got)
				}
				if seen := program.seen(); strings.TrimSuffix(seen, " -") != "GET /page" {
					t.Errorf("%q: the program was asked %q", text, seen)
				}
			}
			// What --read names has the connection to itself.
			named := standby(t, gate.Options{Upstream: parse(t, program.url), Reads: []string{"GET /page", "POST /page"}})
			for _, text := range []string{withLength("GET", ""), withLength("POST", ""), chunked("POST", "", smuggled), chunked("GET", "", smuggled)} {
				for range 3 {
					if got := tell(t, named.URL, text); got != "200" {
						t.Errorf("%q: %s", text, got)
					}
					if got := tell(t, named.URL, "GET /other HTTP/1.1\r\nHost: gate\r\n\r\n"); got != "200" {
						t.Errorf("a read after it: %s", got)
					}
				}
				if seen := program.seen(); strings.Contains(seen, "smuggled") || strings.Count(seen, "\n") != 5 {
					t.Errorf("%q: the program was asked %q", text, seen)
				}
			}
		})
	}
}

// Frameworks answer HEAD by the code of GET.
func TestFinding_G2_WritesNamedByGETAreWritesByHEAD(t *testing.T) {
	table(t, gate.Options{Writes: []string{"GET /jobs/*/run", "POST /x"}, Reads: []string{"POST /search", "GET /jobs/**"}},
		"!GET /jobs/7/run", "!HEAD /jobs/7/run", "!HEAD /Jobs/7/run/", "OPTIONS /jobs/7/run", "HEAD /jobs/7", "HEAD /x",
		// Suffixes have to be named.
		"GET /jobs/7/run.json", "GET /jobs/7/run%20", "HEAD /jobs/7/run%20")
	table(t, gate.Options{Writes: []string{"GET /jobs/*/run*"}}, "!GET /jobs/7/run.json", "!GET /jobs/7/run%20", "!HEAD /jobs/7/run.json")
}
