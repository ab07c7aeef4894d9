package server

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// watchBytes is how many bytes a second all watchers together are sent: a crowd of them that comes at once is told everything one after the
// other, while leases are granted and renewed as ever.
const watchBytes = 32 << 20

// paceBurst is how much of a second's share may be used at once.
const paceBurst = 50 * time.Millisecond

// pace bounds how much is done a second. Who takes a share waits for its turn, and keeps nobody from theirs.
type pace struct {
	clk clock.Clock
	one time.Duration // what a thousand take

	mu   sync.Mutex
	next clock.Instant // when there is a share again
}

func newPace(clk clock.Clock, perSecond int) *pace {
	return &pace{clk: clk, one: 1000 * time.Second / time.Duration(perSecond)}
}

// take blocks until n more may be done, or until ctx is done, and returns its cause then.
func (p *pace) take(ctx context.Context, n int) error {
	p.mu.Lock()
	now := p.clk.Now()
	p.next = max(p.next, now.Add(-paceBurst))
	wait := p.next.Sub(now)
	p.next = p.next.Add(p.one * time.Duration(n) / 1000)
	p.mu.Unlock()
	if wait <= 0 {
		return context.Cause(ctx)
	}
	return clock.Sleep(ctx, p.clk, wait)
}

// owe counts n more that were done than was taken.
func (p *pace) owe(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = p.next.Add(p.one * time.Duration(max(n, 0)) / 1000)
}
