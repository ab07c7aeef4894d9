package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// stalls are the times in which the machine stood still, or ran others. They are safe for
// concurrent use.
type stalls struct {
	mu  sync.Mutex
	all []window
}

// watch notes them until ctx is done: it sleeps for moments, and is woken late.
func (s *stalls) watch(ctx context.Context, clk clock.Clock) {
	const nap, late = 5 * time.Millisecond, 50 * time.Millisecond
	for before := clk.Now(); clock.Sleep(ctx, clk, nap) == nil; before = clk.Now() {
		if now := clk.Now(); now.Sub(before) >= nap+late {
			s.mu.Lock()
			s.all = append(s.all, window{outsider, before.Add(nap), now})
			s.mu.Unlock()
		}
	}
}

func (s *stalls) seen() []window {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}
