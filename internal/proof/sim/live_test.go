package sim_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/sim/linear"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

var (
	liveSeeds = flag.Uint64("live.seeds", 400, "how many seeds TestLive tries")
	liveSeed  = flag.Uint64("live.seed", 1, "the first of them")
)

// TestLive puts the real lease package, goroutines and all, through what the simulator puts its rules through, in virtual
// time. A seed decides on the faults and on what programs do, but not on how goroutines are scheduled: a failure may take
// a few tries to come back.
func TestLive(t *testing.T) {
	n := *liveSeeds
	if testing.Short() || raceDetector {
		n = min(n, 30)
	}
	for seed := *liveSeed; seed < *liveSeed+n; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var h linear.History
			synctest.Test(t, func(t *testing.T) { newLive(t, seed, &h).run() })
			if err := h.Check(time.Minute); err != nil {
				t.Errorf("what the store answered: %v", err)
			}
			if h.Len() < 10 { // mostly hundreds; how many in the quietest depends on how goroutines are scheduled
				t.Errorf("only %d requests reached the store", h.Len())
			}
			if t.Failed() {
				t.Logf("again: go test ./internal/proof/sim -run TestLive -live.seeds 1 -live.seed %d", seed)
			}
		})
	}
}

// live is one run: some processes, one store, and an oracle that knows the true time and all of them.
type live struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand // of who injects the faults
	began   time.Time
	db      *memory.DB
	dbClock *clocktest.Clock
	ageless bool
	history *linear.History
	keys    []string
	nodes   []*process
	ttl     time.Duration // the longest
	wg      sync.WaitGroup

	mu      sync.Mutex
	calm    bool
	calmAt  time.Time
	story   []string
	wrong   int
	terms   []*term
	tokens  map[string]*term       // by key and token
	highest map[string]fence.Token // announced
	marks   map[string]fence.Mark
	excused map[string]time.Time // keys: until when two may hold, since an operator wanted it so
	broken  map[string]time.Time // by key and token: when at the latest the term is over
	wanted  map[string]int       // keys: how many wait, in the calm
	vacant  map[string]time.Time

	finalsMu sync.Mutex     // taken under the locks of leases, which may be taken under mu
	finals   map[string]int // final events by key and token
}

// term is a lease that somebody was given.
type term struct {
	*lease.Lease
	p   *process
	ctx context.Context
}

func (x *term) id() string { return x.Name() + "/" + x.Token().String() }

// process is a process on a machine of its own. When it is restarted, it gets a new manager.
type process struct {
	w      *live
	id     int
	ttl    time.Duration
	clk    *clocktest.Clock
	outage *faulty.Outage

	mu      sync.Mutex
	rate    float64
	frozen  bool          // suspended: its clock will be put right when it goes on
	stopped chan struct{} // closed when it goes on; nil while it runs
	m       *lease.Manager
	net     *faulty.Store
	plan    faulty.Plan
}

func newLive(t *testing.T, seed uint64, h *linear.History) *live {
	rng := rand.New(rand.NewPCG(seed, 0x11fe))
	w := &live{
		t: t, seed: seed, rng: rng, began: time.Now(), dbClock: clocktest.New(1e15), ageless: rng.IntN(3) > 0, history: h,
		tokens: map[string]*term{}, highest: map[string]fence.Token{}, marks: map[string]fence.Mark{},
		excused: map[string]time.Time{}, broken: map[string]time.Time{}, wanted: map[string]int{},
		vacant: map[string]time.Time{}, finals: map[string]int{},
	}
	w.dbClock.SetRate(drawRate(rng))
	w.db = memory.NewDB(memory.Options{Clock: w.dbClock})
	for i := range 1 + rng.IntN(3) {
		w.keys = append(w.keys, string(rune('a'+i)))
	}
	for i := range 2 + rng.IntN(4) {
		p := &process{
			w: w, id: i, ttl: []time.Duration{5, 5, 15}[rng.IntN(3)] * time.Second,
			clk: clocktest.New(clock.Instant(rng.Int64N(1e15))), outage: &faulty.Outage{}, rate: 1,
		}
		w.ttl = max(w.ttl, p.ttl)
		w.nodes = append(w.nodes, p)
		p.setRate(drawRate(rng))
		p.setPlan(drawPlan(rng, w.ttl))
		p.boot()
	}
	return w
}

// run lets the programs contend while faults are injected, then ends the faults, and waits until everyone was served.
func (w *live) run() {
	programs := 0
	for _, p := range w.nodes {
		for range 1 + w.rng.IntN(2) {
			programs++
			rng := rand.New(rand.NewPCG(w.seed, uint64(programs)))
			w.wg.Go(func() { p.program(rng) })
		}
	}
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.watch(over)
	}()
	w.faults(time.Duration(8+w.rng.IntN(10)) * w.ttl)
	w.calmDown()
	done := make(chan struct{})
	go func() {
		w.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Duration(20+10*programs) * w.ttl):
		w.violated("not everybody was served in the calm")
		for _, p := range w.nodes {
			_ = p.manager().Close() // so that they give up
		}
		<-done
	}
	close(over)
	<-watched
	for _, p := range w.nodes {
		p.shut()
	}
	w.atTheEnd()
}

// boot starts the process anew: another manager, with another owner id, and another connection.
func (p *process) boot() {
	net := faulty.Wrap(p.w.db.Open(), func(op faulty.Op) faulty.Fault { return p.outage.Plan(p.faultPlan())(op) })
	m, err := lease.NewManager(&gated{p.w.history.Client(net), p}, lease.Options{
		TTL: p.ttl, Name: fmt.Sprint("p", p.id), Clock: p.clk, OnEvent: p.w.event,
	})
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m, p.net = m, net
}

// shut closes what boot made.
func (p *process) shut() {
	p.mu.Lock()
	m, net := p.m, p.net
	p.mu.Unlock()
	if err := m.Close(); err != nil {
		p.w.violated("%v: Close: %v", p, err)
	}
	if err := net.Close(); err != nil {
		p.w.violated("%v: closing the connection: %v", p, err)
	}
}

func (p *process) manager() *lease.Manager {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m
}

func (p *process) faultPlan() faulty.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan
}

func (p *process) setPlan(plan faulty.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

func (p *process) setRate(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return
	}
	p.rate = rate
	p.clk.SetRate(rate)
}

func (p *process) String() string { return fmt.Sprint("p", p.id) }

// running blocks while the process is stopped. What it does has to pass here: nothing else keeps its goroutines.
func (p *process) running() {
	for {
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		if stopped == nil {
			return
		}
		<-stopped
	}
}

// status reports whether the process runs, and whether its clock can be read.
func (p *process) status() (runs, frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped == nil, p.frozen
}

// gated is the store as a process sees it that may be stopped: it sends nothing then, and hears no answer.
type gated struct {
	inner store.Store
	p     *process
}

func (g *gated) hear(rec store.Record) store.Record {
	g.p.running()
	if g.p.w.ageless {
		rec.Age = 0
	}
	return rec
}

func (w *live) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%9.3fs  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *live) violated(format string, args ...any) {
	w.logf("VIOLATION: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported()
}

// reported fails the test, with the story that led there the first time. w.mu is held.
func (w *live) reported() {
	if w.wrong++; w.wrong <= 3 {
		last := w.story[max(0, len(w.story)-40/w.wrong):]
		w.t.Errorf("seed %d:\n%s", w.seed, strings.Join(last, "\n"))
	}
}
