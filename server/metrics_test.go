package server_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/server"
)

// scrape returns what /metrics says.
func (s *site) scrape(t *testing.T) string {
	t.Helper()
	resp, err := s.Client().Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A name whose holder is gone is not held, and doesn't hide when the next one ends.
func TestMetricsOfExpired(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "gone", `{"ttl": 0.01}`)
	s.acquired(t, "there", `{"ttl": 3600}`)
	var text string
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(text, "\nleasehold_held{state=\"expired\"} 1"); text = s.scrape(t) {
		if time.Now().After(deadline) {
			t.Fatalf("it never expires:\n%s", text)
		}
	}
	_, rest, _ := strings.Cut(text, "\nleasehold_expires_seconds ")
	left, err := strconv.ParseFloat(strings.SplitN(rest, "\n", 2)[0], 64)
	if err != nil || left < 3000 || !strings.Contains(text, "\nleasehold_held{state=\"held\"} 1") {
		t.Errorf("%v %v\n%s", left, err, text)
	}
}

func TestMetrics(t *testing.T) {
	s := newSite(t, server.Options{Version: "v1.2.3"})
	a := s.acquired(t, "a", "")
	b := s.acquired(t, "b", "")
	want(t, s.ask(t, "PUT", "/v1/leases/a", "", nil, "Leasehold-Sequencer", a.Sequencer, "Leasehold-Secret", a.Secret), http.StatusOK)
	want(t, s.ask(t, "DELETE", "/v1/leases/b", "", nil, "Leasehold-Sequencer", b.Sequencer, "Leasehold-Secret", b.Secret), http.StatusNoContent)
	want(t, s.ask(t, "PUT", "/v1/leases/b", "", nil, "Leasehold-Sequencer", b.Sequencer, "Leasehold-Secret", b.Secret), http.StatusConflict)
	want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+b.Sequencer+`"}`, nil), http.StatusOK)
	text := s.scrape(t)
	for _, line := range []string{
		`leasehold_held{state="held"} 1`, `leasehold_held{state="free"} 1`, `leasehold_waiters 0`, `leasehold_store_up 1`,
		`leasehold_build_info{version="v1.2.3"} 1`, `leasehold_lost_total 1`, `leasehold_fenced_writes_total 1`,
		`leasehold_transitions_total{reason="acquired"} 2`, `leasehold_transitions_total{reason="released"} 1`,
		`leasehold_acquire_wait_seconds_count 2`, `leasehold_renew_duration_seconds_count 1`,
		`leasehold_requests_total{op="renew",outcome="not_current"} 1`, `leasehold_token `, `leasehold_expires_seconds `,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}
