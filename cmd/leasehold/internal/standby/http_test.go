package standby_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/compat/admiral"
)

func TestListen(t *testing.T) {
	s := admiral.NewState(nil)
	m := standby.NewMetrics(s)
	server, err := standby.Listen(t.Context(), "127.0.0.1:0", s, m)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	check := func(path string, code int, wants ...string) {
		t.Helper()
		got, body := fetch(t, client, "http://"+server.Addr()+path)
		if got != code {
			t.Errorf("%s: %d, want %d", path, got, code)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is not in:\n%s", path, want, body)
			}
		}
	}
	check("/active", http.StatusServiceUnavailable)
	check("/metrics", http.StatusOK, `leasehold_standby_active{lease="",pod=""} 0`, `leasehold_standby_initialized{lease="",pod=""} 0`)

	checker, err := admiral.Checkers().New(admiral.NoOP, admiral.Params{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- checker.Run(ctx, s) }()
	for st := s.Status(); st.ReadOnly; {
		if st, err = s.Changed(t.Context(), st.Seq); err != nil {
			t.Fatal(err)
		}
	}
	m.Changed(true)
	check("/active", http.StatusOK)
	check("/health/ready?checkifreadonly=true", http.StatusOK)
	check("/metrics", http.StatusOK, `leasehold_standby_active{lease="",pod=""} 1`, `leasehold_standby_changes_total{lease="",pod="",to="active"} 1`,
		`leasehold_standby_store_up{lease="",pod=""} 1`)
	if _, err := standby.Listen(t.Context(), server.Addr(), s, m); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("an address that is taken: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// fetch returns the code and the body of an answer.
func fetch(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
