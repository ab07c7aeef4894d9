package ids

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// node is a machine. Its processes follow one another, its clock goes on.
type node struct {
	w    *world
	name string
	clk  *clocktest.Clock
	cut  faulty.Outage // of its network
	rng  *rand.Rand    // of its program; its faults have another one
	trap int           // at which look at the clock from now on its program is stopped

	mu      sync.Mutex
	stopped chan struct{} // not nil while nothing runs here; closed when it goes on
}

// origin is how much later than the bubble's time the wall clocks are right: the layouts' epochs are later than that.
const origin = 30 * 365 * 24 * time.Hour

func newNode(w *world, i int, name string) *node {
	n := &node{w: w, name: name, clk: clocktest.New(clock.Instant(i) * 1e12), rng: rand.New(rand.NewPCG(w.seed, uint64(i)))}
	n.clk.StepWall(origin)
	return n
}

// off returns how far the wall clock is ahead of the true time.
func (n *node) off() time.Duration { return n.clk.Wall().Sub(time.Now().Add(origin)) }

// halt stops all that runs on the machine for d; what is stopped already isn't stopped again.
func (n *node) halt(d time.Duration) {
	n.mu.Lock()
	if n.stopped != nil {
		n.mu.Unlock()
		return
	}
	n.stopped = make(chan struct{})
	n.clk.Pause()
	n.mu.Unlock()
	time.Sleep(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.stopped)
	n.stopped = nil
	n.clk.Resume()
}

// stall returns when the machine isn't stopped.
func (n *node) stall() {
	for {
		n.mu.Lock()
		stopped := n.stopped
		n.mu.Unlock()
		if stopped == nil {
			return
		}
		<-stopped
	}
}

// now is the wall clock for a generator.
func (n *node) now() time.Time { return n.look(n.clk.Wall) }

// look looks at a clock. After a trap was set, the process is stopped just after that.
func (n *node) look(clock func() time.Time) time.Time {
	t := clock()
	if n.trap--; n.trap == 0 {
		n.w.happened(stoppedBetween)
		n.halt(n.upTo(3 * time.Hour))
	}
	n.stall()
	return t
}

// upTo draws a time up to d, small ones as often as large ones.
func (n *node) upTo(d time.Duration) time.Duration { return skewed(n.rng, d) }

// skewed draws a time up to d, from a thousandth of it on: each order of magnitude is as likely as another.
func skewed(rng *rand.Rand, d time.Duration) time.Duration {
	for range rng.IntN(4) {
		d /= 10
	}
	return 1 + time.Duration(rng.Int64N(int64(d)))
}

// sleep waits by the machine's clock, which may be stopped.
func (n *node) sleep(ctx context.Context, d time.Duration) {
	_ = clock.Sleep(ctx, n.clk, d)
	n.stall()
}

// stopping is a store as a process sees it that can be stopped: what it asks and what it is told waits until it goes on.
type stopping struct {
	inner *faulty.Store
	n     *node
}

var _ store.Waiter = stopping{}

func (s stopping) Get(ctx context.Context, key string) (store.Record, error) {
	s.n.stall()
	defer s.n.stall()
	return s.inner.Get(ctx, key)
}

func (s stopping) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	s.n.stall()
	defer s.n.stall()
	return s.inner.Put(ctx, rec)
}

func (s stopping) Delete(ctx context.Context, key, version string) error {
	s.n.stall()
	defer s.n.stall()
	return s.inner.Delete(ctx, key, version)
}

func (s stopping) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		s.n.stall()
		for rec, err := range s.inner.List(ctx, prefix) {
			s.n.stall()
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (s stopping) Wait(ctx context.Context, key, version string) (store.Record, error) {
	s.n.stall()
	defer s.n.stall()
	return s.inner.Wait(ctx, key, version)
}

func (s stopping) Close() error { return s.inner.Close() }

func (s stopping) Properties() store.Properties { return s.inner.Properties() }
