package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store/memory"
)

// What is left when a renewal comes is measured, of leases and of sessions; the grant itself, and a term of another, are none.
func TestRenewalMargins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{Clock: virtual()})
		srv, err := server.New(st, server.Options{Clock: virtual()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		ask := func(method, path, body string, want int, header ...string) http.Header {
			t.Helper()
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			srv.ServeHTTP(w, r)
			if w.Code != want {
				t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
			return w.Header()
		}
		scraped := func(lines ...string) {
			t.Helper()
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
			for _, line := range lines {
				if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
					var of []string
					for text := range strings.Lines(w.Body.String()) {
						if strings.HasPrefix(text, "leasehold_renewal_margin") {
							of = append(of, text)
						}
					}
					t.Errorf("no %s in\n%s", line, strings.Join(of, ""))
				}
			}
		}
		h := ask("POST", "/v1/leases/job", `{"ttl": 100}`, http.StatusCreated)
		proof := []string{"Leasehold-Sequencer", h.Get("Leasehold-Sequencer"), "Leasehold-Secret", h.Get("Leasehold-Secret")}
		scraped("leasehold_renewal_margin_ratio_count 0")
		time.Sleep(30 * time.Second) // of the 80 s for which it is valid, about 50 are left
		ask("PUT", "/v1/leases/job", "", http.StatusOK, proof...)
		scraped(`leasehold_renewal_margin_ratio_bucket{le="0.4"} 0`, `leasehold_renewal_margin_ratio_bucket{le="0.5"} 1`, `leasehold_renewal_margin_seconds_bucket{le="30"} 0`, `leasehold_renewal_margin_seconds_bucket{le="60"} 1`)
		time.Sleep(110 * time.Second) // too late, and yet nobody has taken it
		ask("PUT", "/v1/leases/job", "", http.StatusOK, proof...)
		scraped(`leasehold_renewal_margin_ratio_bucket{le="0"} 1`, "leasehold_renewal_margin_ratio_count 2")
		ask("DELETE", "/v1/leases/job", "", http.StatusNoContent, proof...)
		ask("POST", "/v1/leases/job", `{"ttl": 100}`, http.StatusCreated)
		scraped("leasehold_renewal_margin_ratio_count 2")
	})
}
