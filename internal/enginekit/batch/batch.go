// Package batch sends writes to a server together when callers ask for many at once, as databases
// commit writes in groups.
//
// If no write, or few, are being sent, the caller sends a new one at once, alone. The writes that
// callers ask for meanwhile are sent together, when one of those is answered, or after a
// millisecond if that comes first. So both sides handle one request instead of many, and no caller
// waits long.
package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Write is one write.
type Write interface {
	Key() string // of the record: one group never holds two writes to a key
	Size() int   // about how many bytes it sends
}

// Limits of a group.
const (
	most      = 100       // writes
	mostBytes = 512 << 10 // unless one write alone is larger
)

// patience is how long a write waits for those that are under way to be answered: about what a
// write takes where the server is near, and little where it is far.
const patience = time.Millisecond

// Groups sends writes. Its methods may be called from any goroutine.
type Groups[W Write] struct {
	send    func(ctx context.Context, group []W)
	width   int            // requests under way that have writes wait
	timer   *time.Timer    // fires when the queue's first has waited long enough
	running sync.WaitGroup // goroutines that send

	mu     sync.Mutex
	closed bool
	// Of what is under way, only what was sent last counts: it is of this round.
	round  int
	flying int                 // requests of this round under way
	queue  []*place[W]         // waits for them; empty when there are none
	keys   map[string]struct{} // of writes that wait or are under way together
}

// place is a write in the queue, and then in a group.
type place[W Write] struct {
	w     W
	group *group        // nil while it waits
	done  chan struct{} // closed when its group was answered, or never will be sent
}

// group is what the writes that are sent together share.
type group struct {
	left   int // callers that still wait
	cancel context.CancelFunc
}

// New returns groups of which width requests are under way before writes wait, 1 where more at once
// cost the server more than the wait costs the caller. They call send, which blocks until the
// writes are answered, or soon after its context is done: that is when no caller waits any more.
// What came of each write, send notes in it.
func New[W Write](width int, send func(ctx context.Context, group []W)) *Groups[W] {
	g := &Groups[W]{send: send, width: width, keys: map[string]struct{}{}}
	g.timer = time.AfterFunc(patience, g.overdue) //nolint:forbidigo // a suspension that prolongs a millisecond does no harm
	g.timer.Stop()
	return g
}

// Do has w sent: by a call of alone, or together with others. It blocks until that is done, or
// until ctx is when w is sent together with others. Then it returns the cause, and whether w was
// sent; w must not be looked at any more. A write that Close met before it was sent returns
// [store.ErrClosed].
func (g *Groups[W]) Do(ctx context.Context, w W, alone func()) (sent bool, err error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false, store.ErrClosed
	}
	_, busy := g.keys[w.Key()]
	// The second of a key is as good as refused, and delays nobody by it.
	if g.flying < g.width || busy {
		g.flying++
		round := g.round
		g.mu.Unlock()
		defer g.landed(round)
		alone()
		return true, nil
	}
	p := &place[W]{w: w, done: make(chan struct{})}
	g.keys[w.Key()] = struct{}{}
	g.queue = append(g.queue, p)
	if len(g.queue) == 1 {
		g.timer.Reset(patience)
	}
	g.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return g.leave(ctx, p)
}

// leave returns what became of p's write, whose caller waits no more.
func (g *Groups[W]) leave(ctx context.Context, p *place[W]) (sent bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.group != nil {
		if p.group.left--; p.group.left == 0 {
			p.group.cancel()
		}
		select {
		case <-p.done:
			return true, nil
		default:
			return true, context.Cause(ctx)
		}
	}
	delete(g.keys, p.w.Key())
	i := slices.Index(g.queue, p)
	if i < 0 {
		return false, store.ErrClosed
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return false, context.Cause(ctx)
}

// overdue sends what waits, though nothing that is under way was answered. The answer to that will
// hold up nobody any more, and release nobody.
func (g *Groups[W]) overdue() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		g.round++
		g.flying = 1
		g.fly()
	}
}

// landed takes note that a request was answered, and sends what waited for that.
func (g *Groups[W]) landed(round int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case round != g.round:
	case len(g.queue) == 0:
		g.flying--
	default:
		g.fly()
	}
}

// fly sends the first of the queue, in place of a request that was answered.
func (g *Groups[W]) fly() {
	n, bytes := 0, 0
	for n < len(g.queue) && n < most && (n == 0 || bytes+g.queue[n].w.Size() <= mostBytes) {
		bytes += g.queue[n].w.Size()
		n++
	}
	places := g.queue[:n:n]
	g.queue = g.queue[n:]
	if len(g.queue) > 0 {
		g.timer.Reset(patience)
	} else {
		g.timer.Stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	together := &group{left: n, cancel: cancel}
	for _, p := range places {
		p.group = together
	}
	round := g.round
	g.running.Go(func() {
		defer g.landed(round)
		defer cancel()
		g.carry(ctx, places)
	})
}

// carry sends the writes and tells their callers.
func (g *Groups[W]) carry(ctx context.Context, places []*place[W]) {
	writes := make([]W, len(places))
	for i, p := range places {
		writes[i] = p.w
	}
	g.send(ctx, writes)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range places {
		delete(g.keys, p.w.Key())
		close(p.done)
	}
}

// Close drops what was not sent yet, and waits until the rest of what was sent together is
// answered, or nobody waits for it any more. It may be called twice.
func (g *Groups[W]) Close() {
	g.mu.Lock()
	g.closed = true
	for _, p := range g.queue {
		close(p.done)
	}
	g.queue = nil
	g.timer.Stop()
	g.mu.Unlock()
	g.running.Wait()
}
