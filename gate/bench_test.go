package gate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/gate"
)

// BenchmarkOverhead sends each request twice, straight to the program and through the gate, in turns, and reports how much longer
// the second way takes.
func BenchmarkOverhead(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = rw.Write(body)
	}))
	defer upstream.Close()
	s := serve(b, gate.Options{Upstream: parse(b, upstream.URL), Kubernetes: true, Reads: []string{"POST /search/**"}}, nil)
	for _, c := range []struct {
		name, method string
		size         int
	}{{"read", "GET", 0}, {"write-1KiB", "POST", 1 << 10}, {"write-1MiB", "POST", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			body := strings.Repeat("x", c.size)
			var direct, proxied []time.Duration
			for b.Loop() {
				direct = append(direct, timed(b, upstream.Client(), c.method, upstream.URL, body))
				proxied = append(proxied, timed(b, s.server.Client(), c.method, s.server.URL, body))
			}
			slices.Sort(direct)
			slices.Sort(proxied)
			report := func(d time.Duration, unit string) { b.ReportMetric(float64(d.Nanoseconds())/1e3, unit) }
			for name, p := range map[string]int{"p50": 50, "p99": 99} {
				n := len(direct) * p / 100
				report(direct[n], "direct-"+name+"-µs")
				report(proxied[n], "proxied-"+name+"-µs")
			}
			report(proxied[len(proxied)/2]-direct[len(direct)/2], "overhead-p50-µs")
		})
	}
}

func timed(b *testing.B, c *http.Client, method, url, body string) time.Duration {
	began := time.Now()
	if a := send(c, method, url, strings.NewReader(body)); a.code != http.StatusOK || len(a.text) != len(body) {
		b.Fatalf("%s: %d bytes", a, len(a.text))
	}
	return time.Since(began)
}
