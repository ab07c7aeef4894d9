package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

const (
	// censusRest is for how long what was counted is said again, at least.
	censusRest = time.Second
	// censusShare is how many times as long as it took to count that is: who asks, to count takes a
	// twentieth of the time.
	censusShare = 20
)

// census counts the names of the store, when somebody asks and the last count is old: one at a
// time, for all who ask.
type census struct {
	s *Server

	mu      sync.Mutex
	last    *count        // nil before the first
	next    clock.Instant // when there may be another
	running chan struct{} // closed when that is over; nil for none
}

// count is what there was in the store at a time.
type count struct {
	at      clock.Instant
	states  map[api.State]int // names, by state
	highest fence.Token
	// Until the first hold ends that had not; negative when that is known of none.
	first time.Duration
	err   error // why it could not be counted
}

// take returns the last count that is young enough. It waits for one that is under way for 2 s at
// most; nil is none.
func (c *census) take() *count {
	running := c.begin()
	if running == nil {
		return c.latest()
	}
	timer := clock.NewTimer(c.s.clk, readyLimit)
	defer timer.Stop()
	select {
	case <-running:
		return c.latest()
	case <-timer.C:
		return nil
	}
}

func (c *census) latest() *count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// begin returns what is closed when the count that is under way is over; it begins one if it is
// time for that, and returns nil if not.
func (c *census) begin() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil || c.last != nil && c.s.clk.Now() < c.next {
		return c.running
	}
	running := make(chan struct{})
	if !c.s.background.start(func() {
		n := c.count()
		c.mu.Lock()
		defer c.mu.Unlock()
		now := c.s.clk.Now()
		rest := censusRest
		if n.err == nil {
			rest = max(rest, censusShare*now.Sub(n.at))
		}
		c.last, c.next = n, now.Add(rest)
		close(running)
		c.running = nil
	}) {
		return nil
	}
	c.running = running
	return running
}

// count counts.
func (c *census) count() *count {
	n := &count{
		at: c.s.clk.Now(), first: -1,
		states: map[api.State]int{api.StateHeld: 0, api.StateBroken: 0, api.StateHanded: 0, api.StateFree: 0, api.StateExpired: 0},
	}
	p := c.s.newPatience(c.s.closing)
	defer p.end()
	read := 0
	for rec, err := range c.s.st.List(p.ctx, "") {
		if read++; read%many == 1 {
			p.extend(0)
		}
		if read%restAfter == 0 && clock.Sleep(p.ctx, c.s.clk, listRest) != nil {
			n.err = context.Cause(p.ctx)
			return n
		}
		switch {
		case errors.Is(err, store.ErrCorrupt): // one row that can't be read is not the store's end
		case err != nil:
			n.err = err
			return n
		case !keyspace.Reserved(rec.Key):
			n.add(rec, c.s.obs.Saw(rec))
		}
	}
	return n
}

func (n *count) add(rec store.Record, seen lease.Status) {
	s := state(rec)
	switch {
	case rec.Owner == "" || rec.Session != "":
	case seen.Standing == lease.NameExpired:
		s = api.StateExpired
	case n.first < 0 || seen.ExpiresIn < n.first:
		n.first = seen.ExpiresIn
	}
	n.states[s]++
	n.highest = max(n.highest, rec.Token)
}
