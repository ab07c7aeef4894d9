package consul

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
)

// TestAnotherServerIsNoEmptyStore: a web server that knows none of Consul's paths says 404 as Consul does of a key that isn't
// stored. Whoever mistyped the port is told so, and not that nobody holds the name.
func TestAnotherServerIsNoEmptyStore(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	s, _ := open(t, api.Config{Address: web.URL}, Options{})
	for what, try := range map[string]func(ctx context.Context) error{
		"Get":  func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
		"Put":  func(ctx context.Context) error { _, err := s.Put(ctx, held("k")); return err },
		"Wait": func(ctx context.Context) error { _, err := s.Wait(ctx, "k", ""); return err },
		"List": func(ctx context.Context) error {
			for _, err := range s.List(ctx, "") {
				return err
			}
			return nil
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := try(ctx)
		cancel()
		if err == nil || errors.Is(err, store.ErrNotFound) || isUnknown(err) || !strings.Contains(err.Error(), strangerAdvice) {
			t.Errorf("%s: %v, want one that says %q", what, err, strangerAdvice)
		}
	}
}

// TestNoHTTP: a port at which something else listens is said to be that, perhaps.
func TestNoHTTP(t *testing.T) {
	for name, answer := range map[string]string{"hangs up": "", "speaks another protocol": "-ERR unknown command\r\n"} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte(answer))
				_ = conn.Close()
			}
		}))
		s, _ := open(t, api.Config{Address: web.URL}, Options{})
		if _, err := s.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "are host and port right") {
			t.Errorf("what %s: %v", name, err)
		}
		web.Close()
	}
}
