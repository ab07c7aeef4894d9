package lease_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// What a session carries is in its record after a third of the TTL, at no write of its own, and goes when it is empty or too long.
func TestASessionCarries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{Info: map[string]string{"version": "7"}})
		s := n.Open()
		var text atomic.Value // of a string; the goroutine that renews reads it
		var calls atomic.Int64
		text.Store("")
		s.Carry("load", func() string {
			calls.Add(1)
			return text.Load().(string)
		})
		before := n.Net.Count(faulty.Put)
		for i, want := range []string{"a", "b", "", "", "c"} {
			text.Store(want)
			if i == 3 {
				text.Store(strings.Repeat("x", lease.MaxCarried+1))
			}
			time.Sleep(ttl / 3)
			rec := w.Get(s.Key())
			if got, ok := rec.Info["load"]; got != want || ok != (want != "") || rec.Info["version"] != "7" {
				t.Errorf("%d: carried %q, want %q; beside %v", i, got, want, rec.Info)
			}
		}
		if got := n.Net.Count(faulty.Put) - before; got != int(calls.Load()) || got > 7 {
			t.Errorf("%d writes, %d of which carried", got, calls.Load())
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if rec := w.Get(s.Key()); rec.Owner != "" || fmt.Sprint(rec.Info["load"]) != "" {
			t.Errorf("after the end: %+v", rec)
		}
	})
}
