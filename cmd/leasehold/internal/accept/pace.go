package accept

import (
	"runtime"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

const (
	// paceBurst is how many connections are taken at once. One costs about 0.1 ms of a core until
	// its request is under way: a crowd that comes back at once would have requests wait for all of
	// it.
	paceBurst = 8
	// paceEach is after how long, on one core, another one may be taken.
	paceEach = 2 * time.Millisecond
	// paceShort is how long a connection lives at most that counts as one for a request alone, and
	// paceMost how many places of those are kept at most.
	paceShort = 250 * time.Millisecond
	paceMost  = 1024
)

// pace spreads the connections of a crowd over time. One that is closed gives its place to another
// at once, so that clients with a connection for each request are not slowed. One whose client has
// hung up before it was answered gives none: what it has cost is to be spread, too.
type pace struct {
	clk   clock.Clock
	each  time.Duration
	freed chan struct{} // a place was given back

	mu    sync.Mutex
	free  int
	since clock.Instant // up to when what time gives back is counted in free
}

func newPace(clk clock.Clock) *pace {
	return &pace{clk: clk, each: paceEach / time.Duration(runtime.GOMAXPROCS(0)), freed: make(chan struct{}, 1), free: paceBurst, since: clk.Now()}
}

// take blocks until there is a place: for each at most.
func (p *pace) take() {
	for {
		wait := p.try()
		if wait == 0 {
			return
		}
		timer := clock.NewTimer(p.clk, wait)
		select {
		case <-timer.C:
		case <-p.freed:
		}
		timer.Stop()
	}
}

// try takes a place, or returns how long it is until there is one.
func (p *pace) try() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clk.Now()
	come := int(now.Sub(p.since) / p.each)
	p.since = p.since.Add(time.Duration(come) * p.each)
	switch {
	case p.free > paceBurst:
		p.free = max(p.free-come, paceBurst)
	case p.free+come >= paceBurst:
		p.free, p.since = paceBurst, now
	default:
		p.free += come
	}
	if p.free == 0 {
		return p.since.Add(p.each).Sub(now)
	}
	p.free--
	return 0
}

// give gives the place of a connection that was closed to another one. Those that lived shortly are
// of clients with a connection for each request: one commit of the store ends many of them at once,
// so all their places are kept, and time takes those away again that nobody takes. The places of
// others are a burst at most: they are of a crowd, which may come back at once.
func (p *pace) give(lived time.Duration) {
	most := paceBurst
	if lived <= paceShort {
		most = paceMost
	}
	p.mu.Lock()
	p.free = max(p.free, min(p.free+1, most))
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}
