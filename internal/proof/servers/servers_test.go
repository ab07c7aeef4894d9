package servers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// within bounds one exchange with a server.
const within = 20 * time.Second

func TestAServerKeepsItsDataThroughFaults(t *testing.T) {
	for _, k := range engines {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.start(t)
			keeps(t, s, k.client)
		})
	}
}

func keeps(t *testing.T, s *Server, c client) {
	put := func(value string, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c.put(ctx, s, value)
	}
	read := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		got, err := c.get(ctx, s)
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		return got
	}
	if err := put("one", within); err != nil {
		t.Fatalf("a server that was said to serve: put: %v", err)
	}
	if got := read(); got != "one" {
		t.Fatalf("got %q, want what was put", got)
	}

	s.Pause()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := c.get(short, s); err == nil { // not a write: it might be done at any time after the pause
		t.Errorf("a paused server answered %q", got)
	}
	s.Resume()
	if got := read(); got != "one" {
		t.Errorf("got %q after a pause, want one", got)
	}
	if err := put("three", within); err != nil {
		t.Fatalf("put after a pause: %v", err)
	}

	s.Kill()
	if err := put("four", time.Second); err == nil {
		t.Error("a killed server answered")
	}
	addr := s.Addr
	s.Restart()
	if got := read(); got != "three" || s.Addr != addr {
		t.Errorf("got %q at %s, want what was put before the kill at %s", got, s.Addr, addr)
	}
	if err := put("five", within); err != nil {
		t.Errorf("put after a restart: %v", err)
	}
	s.Restart() // while it runs
	if got := read(); got != "five" {
		t.Errorf("got %q, want what was put before the second restart", got)
	}
}

// TestRedisServesWhenItHasReadItsData: until then it answers questions about itself, and refuses the rest.
func TestRedisServesWhenItHasReadItsData(t *testing.T) {
	t.Parallel()
	s := Redis(t, Set("appendfsync", "no")) // a process that is killed loses nothing by it
	var script strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&script, "SET key%d value\r\n", i)
	}
	script.WriteString("QUIT\r\n")
	if _, err := s.exchange(t.Context(), script.String()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Restart()
		if err := (redisClient{}).put(t.Context(), s, "value"); err != nil {
			t.Fatal(err)
		}
	}
}
