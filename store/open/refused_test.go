package open

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// Clients that try again and again say at once that nobody listens, whichever of the addresses they are given; and that one of several
// refuses is no reason to give up.
func TestFinding_O4_NobodyListensIsSaidAtOnce(t *testing.T) {
	for rest, limit := range map[string]time.Duration{
		"etcd://127.0.0.1:1": etcdLimit, "etcd://127.0.0.1:1,127.0.0.1:2": etcdLimit, "zk://127.0.0.1:1": sessionLimit, "zk://127.0.0.1:1,127.0.0.1:2": sessionLimit,
	} {
		t.Run(rest, func(t *testing.T) {
			t.Parallel()
			u, err := Parse(rest)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = u.Open(t.Context(), Options{})
			if took := time.Since(begun); took >= limit-time.Second {
				t.Errorf("after %v", took)
			}
			if err == nil || !Unreachable(err) || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "rpc error") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A server that takes the connection, or is slow to, is not refused.
func TestFinding_O4_WhoListensIsNotRefused(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := refused(t.Context(), []string{"127.0.0.1:1", l.Addr().String()}); err != nil {
		t.Errorf("one of two listens: %v", err)
	}
	if err := refused(t.Context(), []string{"127.0.0.1:1"}); err == nil {
		t.Error("nobody listens, and that isn't refused")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*refusedAfter)
	defer cancel()
	first := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	if err := unlessRefused(ctx, []string{l.Addr().String()}, first); err != context.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}
