package admiral_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// The times that Admiral's sample has.
const (
	wait      = 15 * time.Second
	threshold = 3
	ttl       = wait * threshold
	leaseName = "prod"
)

var errRefused = errors.New("connection refused")

// world is one table, what the instances write to, and the instances.
type world struct {
	t    *testing.T
	db   *memory.DB
	res  *resource
	all  []*instance
	stop context.CancelFunc
	ctx  context.Context
	wg   sync.WaitGroup

	both  atomic.Int64 // for so long two were active at a time
	turns atomic.Int64 // the last one begun
	calm  atomic.Int64 // the pause between two looks and two writes, if that is more than usual
}

// inWorld runs f in virtual time, and ends what f has started.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)}), res: &resource{}}
		w.ctx, w.stop = context.WithCancel(context.Background())
		w.wg.Go(w.meter)
		defer func() {
			for _, i := range w.all {
				i.heal()
			}
			w.stop()
			w.wg.Wait()
		}()
		f(t, w)
	})
}

// step is how often the meter looks.
const step = 20 * time.Millisecond

// meter adds up the time during which more than one instance is active. One that is stopped does nothing, whatever it believes.
func (w *world) meter() {
	for w.ctx.Err() == nil {
		pause := max(step, time.Duration(w.calm.Load()))
		time.Sleep(pause)
		if w.look() > 1 {
			w.both.Add(int64(pause))
		}
	}
}

// look counts the active instances, and numbers the times of being active in the order in which they began.
func (w *world) look() int {
	n := 0
	for _, i := range w.instances() {
		i.mu.Lock()
		idle := i.stopped != nil || i.dead
		i.mu.Unlock()
		if idle {
			continue // to ask it would wake what is stopped
		}
		believes := i.believes()
		if believes {
			n++
		}
		i.mu.Lock()
		if believes && !i.was {
			i.turn = w.turns.Add(1)
		}
		i.was = believes
		i.mu.Unlock()
	}
	return n
}

func (w *world) instances() []*instance {
	w.res.mu.Lock()
	defer w.res.mu.Unlock()
	return append([]*instance(nil), w.all...)
}

// instance is one process, whichever algorithm it runs.
type instance struct {
	w      *world
	pod    string
	clk    *clocktest.Clock
	net    *faulty.Store
	outage *faulty.Outage
	quit   context.CancelFunc
	done   chan struct{}
	state  *admiral.State // nil with the published algorithm
	may    func() (holder string, token fence.Token, ok bool)

	mu      sync.Mutex
	was     bool          // it believed that it was active, when it was looked at last
	turn    int64         // the number of that time
	stopped chan struct{} // closed when it goes on; nil while it runs
	dead    bool
}

// launch starts a process that runs body, and its writer. prepare is called before anybody looks at the instance.
func (w *world) launch(pod string, prepare func(i *instance), body func(ctx context.Context, i *instance)) *instance {
	i := &instance{w: w, pod: pod, clk: clocktest.New(clock.Instant(len(w.all)+1) * 1e12), outage: &faulty.Outage{}, done: make(chan struct{})}
	i.net = faulty.Wrap(w.db.Open(), i.outage.Plan(nil))
	ctx, quit := context.WithCancel(w.ctx)
	i.quit = quit
	prepare(i)
	w.res.mu.Lock()
	w.all = append(w.all, i)
	w.res.mu.Unlock()
	w.wg.Go(func() {
		defer close(i.done)
		body(ctx, i)
	})
	w.wg.Go(func() { i.write(ctx) })
	return i
}

// ours starts an instance of this package's checker.
func (w *world) ours(pod string, opts admiral.Options) *instance {
	return w.launch(pod, func(i *instance) {
		i.state = admiral.NewState(i.clk)
		i.may = func() (string, fence.Token, bool) {
			term, err := i.state.Guard(context.Background())
			if err != nil {
				return "", 0, false
			}
			return term.Owner(), term.Token(), true
		}
	}, func(ctx context.Context, i *instance) {
		opts.Clock = i.clk
		c, err := admiral.New(func(context.Context) (store.Store, error) { return i.net, nil }, config(pod), opts)
		if err != nil {
			w.t.Error(err)
			return
		}
		if err := c.Run(ctx, i.state); err != nil {
			w.t.Errorf("%s: %v", pod, err)
		}
	})
}

func config(pod string) admiral.Config {
	return admiral.Config{
		LeaseName: leaseName, PodIdentifier: pod, WaitTime: wait, FailureThreshold: threshold,
		Region: "region-of-the-table", PodRegion: "region-of-" + pod,
	}
}

// active says whether the instance is running and believes that it may write.
func (i *instance) active() bool {
	i.mu.Lock()
	idle := i.stopped != nil || i.dead
	i.mu.Unlock()
	return !idle && i.believes()
}

func (i *instance) believes() bool {
	_, _, ok := i.may()
	return ok
}

// every is the time between two writes of one instance, and travel the longest that one takes to arrive.
const (
	every  = 200 * time.Millisecond
	travel = 50 * time.Millisecond
)

// write writes to the resource whenever the instance is active. A write that was begun is sent, however late: as one that is
// in a buffer when the process is stopped.
func (i *instance) write(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(max(every, time.Duration(i.w.calm.Load())))
		i.running()
		if ctx.Err() != nil {
			continue
		}
		holder, token, ok := i.may()
		if !ok {
			continue
		}
		i.w.look()
		i.mu.Lock()
		turn := i.turn
		i.mu.Unlock()
		time.Sleep(travel)
		i.running()
		i.mu.Lock()
		dead := i.dead
		i.mu.Unlock()
		if !dead {
			i.w.res.accept(i.pod, holder, token, turn)
		}
	}
}

// running blocks while the process is stopped.
func (i *instance) running() {
	i.mu.Lock()
	c := i.stopped
	i.mu.Unlock()
	if c != nil {
		<-c
	}
}

// sigstop stops the process, sigcont continues it.
func (i *instance) sigstop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = make(chan struct{})
	i.clk.Pause()
}

func (i *instance) sigcont() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped != nil {
		close(i.stopped)
	}
	i.stopped = nil
	i.clk.Resume()
}

// crash ends the process without a word to the store.
func (i *instance) crash() {
	i.mu.Lock()
	i.dead = true
	i.mu.Unlock()
	i.outage.Start()
	i.quit()
}

// heal makes it possible for what is left of the process to end.
func (i *instance) heal() {
	i.outage.StartRefusing(errRefused)
	i.sigcont()
	i.clk.SetRate(1)
}

// resource is what instances write to. It checks tokens, if the writers have any.
type resource struct {
	mu       sync.Mutex
	mark     fence.Mark
	accepted int
	refused  int
	newest   int64  // the latest turn of which a write was accepted
	former   int    // accepted of an earlier turn than that
	last     string // pod of the last write
	turns    int    // how often accepted writes passed from one pod to another
}

func (r *resource) accept(pod, holder string, token fence.Token, turn int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token != 0 {
		mark, err := r.mark.Admit(leaseName, holder, token)
		if err != nil {
			r.refused++
			return
		}
		r.mark = mark
	}
	r.accepted++
	if turn < r.newest {
		r.former++
	}
	r.newest = max(r.newest, turn)
	if pod != r.last {
		r.last = pod
		r.turns++
	}
}

// activeSoon waits until the instance is active, and returns how long that took; more than most is an error.
func (i *instance) activeSoon(most time.Duration) time.Duration {
	i.w.t.Helper()
	start := time.Now()
	for !i.active() {
		if time.Since(start) > most {
			st := i.state.Status()
			i.w.t.Fatalf("%s is not active after %v: %s (%v)", i.pod, most, st.Reason, st.Err)
		}
		time.Sleep(step)
	}
	return time.Since(start)
}

// neverTwo is an error when two were active at a time.
func (w *world) neverTwo() {
	w.t.Helper()
	if both := time.Duration(w.both.Load()); both > 0 {
		w.t.Errorf("two instances were active for %v", both)
	}
}
