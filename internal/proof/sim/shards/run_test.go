package shards

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// kind is a kind of space and of store.
type kind struct {
	name   string
	space  shard.Space
	keys   []string
	paired bool // the store fails over
}

var names = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

var kinds = []kind{
	{"names", shard.Space{Name: "s", Names: names}, names, false},
	{"hashed", shard.Space{Name: "s", Hashed: true, Slices: 8}, []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"}, false},
	{"names, failover", shard.Space{Name: "s", Names: names}, names, true},
	{"hashed, failover", shard.Space{Name: "s", Hashed: true, Slices: 8}, []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"}, true},
}

// world is one run.
type world struct {
	t       *testing.T
	kind    kind
	open    func() store.Store
	ageless bool
	bad     bool // its network
	loaded  bool // its workers report load
	polled  bool // the workers' store doesn't push
	ledger  *Ledger

	mu      sync.Mutex
	workers []Checker
	over    bool
}

// process is one, on a machine of its own.
type process struct {
	w      *world
	m      *lease.Manager
	o      *shard.Owner
	net    *faulty.Store
	clk    *clocktest.Clock
	outage faulty.Outage
}

// Passes implements [Checker].
func (p *process) Passes(key string) (string, fence.Token, bool) {
	s, err := p.o.Slice(key)
	if err != nil {
		return "", 0, false
	}
	return s.ID(), s.Token, true
}

// start starts a process, and returns nil when it can't join.
func (w *world) start(rng *rand.Rand) *process {
	p := &process{w: w, clk: clocktest.New(clock.Instant(rng.Int64N(1e15)))}
	p.clk.SetRate(0.93 + 0.14*rng.Float64())
	st := w.open()
	if w.ageless {
		st = faulty.Ageless(st)
	}
	rates := faulty.Rates{Delay: 0.9, ReplyDelay: 0.9, MaxDelay: 300 * time.Millisecond}
	if w.bad {
		rates.Refuse, rates.Drop, rates.LoseReply, rates.ApplyLate, rates.ApplyTwice, rates.Silent = 0.02, 0.02, 0.04, 0.04, 0.04, 0.3
		rates.MaxDelay = 2 * time.Second
	}
	p.net = faulty.Wrap(st, p.outage.Plan(faulty.Random(rng.Uint64(), rates)))
	used := store.Store(p.net)
	if w.polled {
		used = faulty.Polled(p.net)
	}
	m, err := lease.NewManager(used, lease.Options{TTL: ttl, Clock: p.clk})
	if err != nil {
		w.t.Fatal(err)
	}
	p.m = m
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	worker := shard.Worker{Address: fmt.Sprint("host-", rng.IntN(1000)), DrainWithin: time.Second, PrepareWithin: time.Second}
	slow := func() time.Duration { return time.Duration(rand.Int64N(int64(500 * time.Millisecond))) }
	if rng.IntN(2) == 0 {
		worker.Prepare = func(ctx context.Context, _ *shard.Slice) { _ = clock.Sleep(ctx, p.clk, slow()) }
	}
	if rng.IntN(2) == 0 {
		worker.Start = func(ctx context.Context, _ *shard.Slice) error {
			_ = clock.Sleep(ctx, p.clk, slow())
			if rand.IntN(20) == 0 {
				return errors.New("not today")
			}
			return nil
		}
		worker.Drain = func(ctx context.Context, _ *shard.Slice) { _ = clock.Sleep(ctx, p.clk, slow()) }
		worker.Stop = func(s *shard.Slice) {
			if s.Check() == nil {
				w.t.Error("a slice passes while it is stopped")
			}
		}
	}
	if p.o, err = shard.Join(ctx, m, w.kind.space, worker); err != nil {
		p.close()
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workers = append(w.workers, p)
	return p
}

func (p *process) close() {
	p.clk.Resume()
	if p.o != nil {
		if err := p.o.Close(); err != nil {
			p.w.t.Error(err)
		}
	}
	if err := errors.Join(p.m.Close(), p.net.Close()); err != nil {
		p.w.t.Error(err)
	}
}

// live lets a process work while something befalls it.
func (p *process) live(rng *rand.Rand) {
	some := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	time.Sleep(some(2 * ttl))
	switch rng.IntN(6) {
	case 0: // it dies
		p.outage.Start()
		time.Sleep(2 * ttl)
	case 1: // it is cut off for a while
		p.outage.Start()
		time.Sleep(some(2 * ttl))
		p.outage.End()
	case 2, 3: // it is stopped for a while: no timer fires
		p.clk.Pause()
		time.Sleep(some(2 * ttl))
		p.clk.Resume()
	case 4: // it leaves
		ctx, cancel := context.WithTimeout(context.Background(), some(2*ttl))
		_ = p.o.Leave(ctx) // or is cut short
		cancel()
	}
	time.Sleep(some(ttl))
	p.close()
}

// observe asks who owns what until the run is over.
func (w *world) observe() {
	for !w.ended() {
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		w.mu.Lock()
		workers := w.workers
		w.mu.Unlock()
		w.ledger.Observe(w.kind.keys[rand.IntN(len(w.kind.keys))], workers)
		w.load(workers)
	}
}

// load has workers report the load of their keys, one of which is hot for a while, so that slices move, split and merge by it.
func (w *world) load(workers []Checker) {
	if !w.loaded {
		return
	}
	hot := time.Now().Unix() / int64(2*ttl/time.Second)
	for i, key := range w.kind.keys {
		n := 1.0
		if int(hot)%len(w.kind.keys) == i {
			n = 50
		}
		for _, c := range workers {
			c.(*process).o.Report(key, n*rand.Float64())
		}
	}
}

func (w *world) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// operate asks for moves, splits and merges, and drains workers, until the run is over.
func (w *world) operate(rng *rand.Rand) {
	st := w.open()
	defer st.Close()
	for !w.ended() {
		time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		key := w.kind.keys[rng.IntN(len(w.kind.keys))]
		all, err := shard.Members(ctx, st, w.kind.space.Name)
		switch n := rng.IntN(4); {
		case err != nil || len(all) == 0:
		case n < 2:
			_ = shard.RequestMove(ctx, st, w.kind.space.Name, key, all[rng.IntN(len(all))].Session) // it may fail: the next one comes
		case !w.kind.space.Hashed && n == 2:
			_ = shard.RemoveNames(ctx, st, w.kind.space.Name, key)
		case !w.kind.space.Hashed:
			_ = shard.AddNames(ctx, st, w.kind.space.Name, w.kind.keys...)
		case n == 2:
			_ = shard.RequestSplit(ctx, st, w.kind.space.Name, shard.Hash(key)+rng.Uint64N(1<<50))
		default:
			_ = shard.RequestMerge(ctx, st, w.kind.space.Name, shard.Hash(key))
		}
		cancel()
	}
}

// run lets processes share a space, and returns what was seen.
func run(t *testing.T, seed uint64, k kind) (l *Ledger) {
	l = NewLedger()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0x5a4d))
		w := &world{t: t, kind: k, ageless: rng.IntN(2) == 0, bad: rng.IntN(2) == 0, ledger: l}
		w.loaded, w.polled = seed%3 > 0, seed%4 == 3
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		w.open = func() store.Store { return db.Open() }
		var beside sync.WaitGroup
		if k.paired {
			pair := faulty.NewPair(clocktest.New(0))
			worth := store.ReadWorth(1 + rng.IntN(3))
			w.open = func() store.Store { return pair.Open(worth) }
			w.ageless = false
			failing := rand.New(rand.NewPCG(seed, 77))
			beside.Go(func() { w.failOver(pair, failing) })
		}
		operating := rand.New(rand.NewPCG(seed, 78))
		beside.Go(w.observe)
		beside.Go(func() { w.operate(operating) })
		var wg sync.WaitGroup
		for i := range 4 {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for range 2 { // one life after the other
					if p := w.start(rng); p != nil {
						p.live(rng)
					}
				}
			})
		}
		wg.Wait()
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
		beside.Wait()
	})
	return l
}

// failOver has the primary die now and then, with what its replica has not heard of.
func (w *world) failOver(pair *faulty.Pair, rng *rand.Rand) {
	for !w.ended() {
		time.Sleep(time.Duration(rng.Int64N(int64(ttl))))
		pair.Detach()
		time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
		if rng.IntN(3) > 0 {
			pair.FailOver()
		}
		pair.Attach()
	}
}

var (
	seeds = flag.Uint64("shards.seeds", 60, "how many seeds TestOwners tries")
	first = flag.Uint64("shards.seed", 0, "the first of them")
)

// Whatever network, clocks, stops, deaths, moves, splits, merges, loads and failovers do, a key has one owner, and its token rises. A seed
// decides on those, but not on how goroutines are scheduled: a failure may take a few tries to come back.
func TestOwners(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			passed, terms := 0, 0
			for seed := *first; seed < *first+*seeds; seed++ {
				l := run(t, seed, k)
				if err := l.Err(); err != nil {
					t.Fatalf("seed %d: %v\nagain: go test ./internal/proof/sim/shards -run TestOwners -shards.seeds 1 -shards.seed %d", seed, err, seed)
				}
				p, n := l.Seen()
				passed, terms = passed+p, terms+n
			}
			t.Logf("%d checks passed, %d terms of keys", passed, terms)
			if *seeds >= 60 && (passed < 10000 || terms < 200) {
				t.Error("too little of something")
			}
		})
	}
}
