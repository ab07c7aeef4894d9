package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// The demo has names that are held, contended and kept by a session, at once, and ends with its server.
func TestServeDemo(t *testing.T) {
	s := newPlace(t).serve("--demo")
	eventually(t, "its actors act", func() bool {
		_, text := s.ask(http.MethodGet, "/v1/leases", "", "")
		return strings.Contains(text, "ingest/leader") && strings.Contains(text, `"session":`) && strings.Contains(text, `"waiters":3`)
	})
	s.signal(syscall.SIGTERM)
	if code := s.code(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}
