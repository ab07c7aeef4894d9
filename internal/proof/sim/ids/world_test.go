package ids

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// plan is what a run is.
type plan struct {
	seed    uint64
	nodes   int
	values  int
	length  time.Duration
	calm    time.Duration // between two things that happen to a machine, on average
	batch   int           // ids in one, on average
	layout  flake.Layout
	without rule

	// fine has every second process run on a network that loses nothing: a look at all values is a hundred requests, and on the usual one
	// hardly any comes to the end and shows that all are held.
	fine bool
}

// world is a run.
type world struct {
	plan
	t      *testing.T
	db     *memory.DB
	outage faulty.Outage // of the store

	ours, plain ledger

	mu     sync.Mutex
	counts map[event]int
}

// values is the range of the pool.
func (w *world) values() string { return fmt.Sprintf("0-%d", w.plan.values-1) }

func (w *world) happened(what event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// outcome is what a run showed.
type outcome struct {
	ids, twice, plainIDs, plainTwice uint64
	counts                           map[event]int
}

// run runs a plan in virtual time. The seed decides on the faults, but not on how goroutines are scheduled.
func run(t *testing.T, p plan) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{plan: p, t: t, counts: map[event]int{}, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)})}
		ctx, cancel := context.WithTimeout(t.Context(), p.length)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() { w.fail(ctx) })
		for i := range p.nodes {
			n := newNode(w, i, fmt.Sprintf("node-%d", i))
			group.Go(func() { n.suffer(ctx, rand.New(rand.NewPCG(p.seed, uint64(1000+i)))) })
			group.Go(func() { n.live(ctx) })
		}
		group.Wait()
		o.ids, o.twice = w.ours.count()
		o.plainIDs, o.plainTwice = w.plain.count()
		o.counts = w.counts
	})
	return o
}

// network returns what happens to the requests of one process when its network is as usual.
func (w *world) network(seed uint64) faulty.Plan {
	random := faulty.Random(seed, faulty.Rates{
		Delay: 0.2, ReplyDelay: 0.2, Refuse: 0.005, Drop: 0.005, LoseReply: 0.01, ApplyLate: 0.01, ApplyTwice: 0.01, Silent: 0.3,
		MaxDelay: 10 * time.Second,
	})
	return func(op faulty.Op) faulty.Fault {
		f := random(op)
		f.ApplyLate *= 40 // long after its sender has given up, or was killed
		switch {
		case f.Drop, f.Err != nil:
			w.happened(lostRequest)
		case f.LoseReply:
			w.happened(lostReply)
		case f.ApplyLate > 0:
			w.happened(lateWrite)
		}
		return f
	}
}

// errRefused is what a store answers that can't.
var errRefused = errors.New("the store is in trouble")

// fail has the store go away now and then.
func (w *world) fail(ctx context.Context) {
	rng := rand.New(rand.NewPCG(w.seed, 999))
	for after(ctx, rng, w.calm) {
		w.happened(storeOut)
		if rng.IntN(2) == 0 {
			w.outage.StartRefusing(errRefused)
		} else {
			w.outage.Start()
		}
		after(ctx, rng, w.calm/12)
		w.outage.End()
	}
	w.outage.End()
}

// after waits for a time whose mean is d, and reports whether ctx is not done.
func after(ctx context.Context, rng *rand.Rand, d time.Duration) bool {
	timer := time.NewTimer(time.Duration(rng.ExpFloat64() * float64(d)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// suffer has things happen to a machine.
func (n *node) suffer(ctx context.Context, rng *rand.Rand) {
	for after(ctx, rng, n.w.calm) {
		switch rng.IntN(6) {
		case 0:
			n.w.happened(paused)
			n.halt(skewed(rng, 6*time.Hour))
		case 1: // as of a virtual machine whose host doesn't tell it: both of its clocks are late from then on
			n.w.happened(frozen)
			n.clk.SetRate(0)
			n.halt(skewed(rng, 3*time.Hour))
			n.clk.SetRate(1)
			after(ctx, rng, n.w.calm/16)
			n.setRight()
		case 2:
			n.w.happened(rateChanged)
			n.clk.SetRate(1 + (2*rng.Float64()-1)*[]float64{0.0001, 0.01, 0.05}[rng.IntN(3)])
			after(ctx, rng, n.w.calm)
			n.clk.SetRate(1)
			n.setRight()
		case 3:
			n.w.happened(cutOff)
			n.cut.Start()
			after(ctx, rng, n.w.calm/4)
			n.cut.End()
		default:
			n.w.happened(clockWrong)
			step := skewed(rng, day-time.Hour)
			if rng.IntN(2) == 0 {
				step = -step
			}
			n.clk.StepWall(step)
			after(ctx, rng, n.w.calm/8)
			n.setRight()
		}
	}
	n.cut.End()
}

const day = 24 * time.Hour

// setRight corrects the wall clock, by a day at most.
func (n *node) setRight() {
	n.w.happened(clockRight)
	n.clk.StepWall(-max(min(n.off(), day), -day))
}
