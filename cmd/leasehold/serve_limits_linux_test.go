package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// What is beyond a limit is answered as the manual says, and the manual has the limits that there are.
func TestServeLimits(t *testing.T) {
	s := newPlace(t).serve("--max-ttl", "1m", "--max-wait", "1m")
	for _, c := range []struct {
		what, path, body, header string
		status                   int
		says                     string
	}{
		{"a name", strings.Repeat("n", store.MaxKey+1), "", "", 400, `"field":"name"`},
		{"a record", "a", `{"info": {"k": "` + strings.Repeat("x", store.MaxRecord) + `"}}`, "", 400, `"code":"invalid_request"`},
		{"a TTL", "a", `{"ttl": "61s"}`, "", 400, "want 10ms to 1m0s"},
		{"a wait", "a", `{"wait": "61s"}`, "", 400, "want 0s to 1m0s"},
		{"a header", "a", "", strings.Repeat("h", 2*headerBytes), 431, ""},
		{"a body", "a", `{"holder": "` + strings.Repeat("x", server.DefaultMaxBody) + `"}`, "", 413, `"code":"too_large"`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/leases/"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Header", c.header)
		status, text := s.send(req)
		if status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %.300s, want %d and %s", c.what, status, text, c.status, c.says)
		}
	}
	text, err := os.ReadFile("../../docs/server-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	const day, kib = 24, 1 << 10
	for _, row := range []string{
		fmt.Sprintf("| a name, a record | %d bytes, %d KiB |", store.MaxKey, store.MaxRecord/kib),
		fmt.Sprintf("| `ttl` | %d ms to %.0f days |", store.MinTTL.Milliseconds(), store.MaxTTL.Hours()/day),
		fmt.Sprintf("| `wait` | %.0f h |", server.DefaultMaxWait.Hours()),
		fmt.Sprintf("| the header of a request, its time | %d KiB, %.0f s |", headerBytes/kib, headerLimit.Seconds()),
		fmt.Sprintf("| the body, its time | %d KiB, 30 s |", server.DefaultMaxBody/kib),
		fmt.Sprintf("| a client that doesn't read its answer | %.0f s for each 64 KiB |", stallLimit.Seconds()),
		fmt.Sprintf("| a connection on which nothing is asked | %.0f min |", idleLimit.Minutes()),
		fmt.Sprintf("| requests of one caller that wait or watch | %d,%03d |", server.DefaultMaxWaiting/1000, server.DefaultMaxWaiting%1000),
	} {
		if !strings.Contains(string(text), "\n"+row) {
			t.Errorf("docs/server-reference.md has no row %q", row)
		}
	}
}

// What the limit of open files leaves is shared out so that no client has all of it.
func TestConnectionLimits(t *testing.T) {
	for _, c := range []struct{ all, one, wantAll, wantOne int }{{1000, 0, 1000, 900}, {1000, 10, 1000, 10}, {5, 0, 5, 5}} {
		o := serveOptions{connections: c.all, client: c.one}.limits()
		if o.Most != c.wantAll || o.PerClient != c.wantOne {
			t.Errorf("%+v: %d, %d", c, o.Most, o.PerClient)
		}
	}
	if o := (serveOptions{}).limits(); o.Most < 100 || o.PerClient >= o.Most {
		t.Errorf("by default: %d, %d", o.Most, o.PerClient)
	}
}
