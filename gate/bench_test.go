package gate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
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
	s := serve(b, gate.Options{Upstream: parse(b, upstream.URL), Preset: gate.Kubernetes, Reads: []string{"POST /search/**"}}, nil)
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

// BenchmarkRate has 16 clients send requests through the gate, and through a plain reverse proxy, in turns, and reports at which rates they
// are answered.
func BenchmarkRate(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = rw.Write(body)
	}))
	defer upstream.Close()
	transport := func() *http.Transport {
		return &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true}
	}
	plain := httputil.NewSingleHostReverseProxy(parse(b, upstream.URL))
	plain.Transport = transport()
	proxy := httptest.NewServer(plain)
	defer proxy.Close()
	s := serve(b, gate.Options{Upstream: parse(b, upstream.URL)}, nil)
	for _, c := range []struct {
		name, method string
		size         int
	}{{"read", "GET", 0}, {"write-1KiB", "POST", 1 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			const clients, each = 16, 5 // in turns so short that what else the machine does strikes both
			client := &http.Client{Transport: transport()}
			defer client.CloseIdleConnections()
			body := strings.Repeat("x", c.size)
			all := func(url string) (took time.Duration) {
				began := time.Now()
				var wg sync.WaitGroup
				for range clients {
					wg.Go(func() {
						for range each {
							if a := send(client, c.method, url, strings.NewReader(body)); a.code != http.StatusOK || len(a.text) != len(body) {
								b.Errorf("%s: %d bytes", a, len(a.text))
							}
						}
					})
				}
				wg.Wait()
				return time.Since(began)
			}
			var gated, proxied time.Duration
			for b.Loop() {
				gated += all(s.server.URL)
				proxied += all(proxy.URL)
			}
			n := float64(b.N * clients * each)
			b.ReportMetric(n/gated.Seconds(), "gate-requests/s")
			b.ReportMetric(n/proxied.Seconds(), "proxy-requests/s")
			b.ReportMetric(proxied.Seconds()/gated.Seconds(), "gate/proxy")
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
