package locks

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// user is how a program uses a lock: as one of its session's, and for how much of it.
type user struct {
	weight int
	turns  bool // it takes its turn before the lock itself
	lock   func(ctx context.Context) (*lock.Hold, error)
	try    func(ctx context.Context) (*lock.Hold, error)
	down   func(ctx context.Context, h *lock.Hold) (*lock.Hold, error) // makes a reader of a writer; nil where it stays one
}

// kinds are the locks whose histories are checked. use draws one way to use it.
var kinds = []struct {
	name    string
	history func() *History
	use     func(s *lease.Session, rng *rand.Rand) (user, error)
}{
	{"semaphore", func() *History { return Semaphore(4) }, func(s *lease.Session, rng *rand.Rand) (user, error) {
		return ofSemaphore(s, 1+rng.IntN(3), false)
	}},
	{"fair semaphore", func() *History { return Semaphore(4) }, func(s *lease.Session, rng *rand.Rand) (user, error) {
		return ofSemaphore(s, 1+rng.IntN(3), true)
	}},
	{"semaphore of all or one", func() *History { return Semaphore(4) }, func(s *lease.Session, rng *rand.Rand) (user, error) {
		return ofSemaphore(s, 1+3*rng.IntN(2), false)
	}},
	{"read-write lock", RWMutex, func(s *lease.Session, rng *rand.Rand) (user, error) {
		rw, err := lock.NewRWMutex(s, "rw")
		if err != nil || rng.IntN(3) == 0 {
			return user{Writer, false, rw.Lock, rw.TryLock, nil}, err
		}
		return user{1, false, rw.RLock, rw.TryRLock, nil}, nil
	}},
	{"read-write lock, downgraded", RWMutex, func(s *lease.Session, rng *rand.Rand) (user, error) {
		rw, err := lock.NewRWMutex(s, "rw")
		if err != nil || rng.IntN(2) == 0 {
			return user{Writer, false, rw.Lock, rw.TryLock, rw.Downgrade}, err
		}
		return user{1, false, rw.RLock, rw.TryRLock, nil}, nil
	}},
	{"mutex, fair or not", func() *History { return Semaphore(1) }, func(s *lease.Session, rng *rand.Rand) (user, error) {
		fair := rng.IntN(2) == 0
		m, err := lock.NewMutex(s, "m", lock.MutexOptions{Fair: fair})
		return user{1, fair, m.Lock, m.TryLock, nil}, err
	}},
}

func ofSemaphore(s *lease.Session, weight int, fair bool) (user, error) {
	sem, err := lock.NewSemaphore(s, "sem", lock.SemaphoreOptions{Limit: 4, Fair: fair})
	return user{
		weight, false,
		func(ctx context.Context) (*lock.Hold, error) { return sem.Acquire(ctx, weight) },
		func(ctx context.Context) (*lock.Hold, error) { return sem.TryAcquire(ctx, weight) },
		nil,
	}, err
}

// world is one run.
type world struct {
	t       *testing.T
	db      *memory.DB
	ageless bool
	bad     bool // its network
	tries   bool // nobody waits: with a good network no refusal is excused by a wait that was given up
	h       *History
	wg      sync.WaitGroup
	ctx     context.Context // of the witnesses
	seeing  sync.WaitGroup
	lost    int // shares whose validity ended before they were released
	mu      sync.Mutex
}

// process is one, on a machine of its own.
type process struct {
	*lease.Session
	w      *world
	m      *lease.Manager
	net    *faulty.Store
	clk    *clocktest.Clock
	rate   float64
	outage faulty.Outage

	mu   sync.Mutex
	gone bool     // its session is over
	left []func() // to be told of that
}

// whenGone calls f when the session is over: at once if it is.
func (p *process) whenGone(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		f()
		return
	}
	p.left = append(p.left, f)
}

// witness waits until the store says that the session is over, or ctx is done.
func (p *process) witness(ctx context.Context) {
	st := p.w.db.Open()
	defer st.Close()
	rec, err := store.Load(ctx, st, p.Key())
	for err == nil && rec.Owner != "" {
		rec, err = store.Wait(ctx, st, p.Key(), rec.Version)
	}
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, f := range p.left {
		f()
	}
}

// start starts a process, and returns nil when it gets no session.
func (w *world) start(rng *rand.Rand) *process {
	p := &process{w: w, clk: clocktest.New(clock.Instant(rng.Int64N(1e15))), rate: 0.93 + 0.14*rng.Float64()}
	p.clk.SetRate(p.rate)
	st := store.Store(w.db.Open())
	if w.ageless {
		st = faulty.Ageless(st)
	}
	rates := faulty.Rates{Delay: 0.9, ReplyDelay: 0.9, MaxDelay: 300 * time.Millisecond}
	if w.bad {
		rates.Refuse, rates.Drop, rates.LoseReply, rates.ApplyLate, rates.ApplyTwice, rates.Silent = 0.02, 0.02, 0.04, 0.04, 0.04, 0.3
	}
	p.net = faulty.Wrap(st, p.outage.Plan(faulty.Random(rng.Uint64(), rates)))
	if p.open() != nil {
		p.close()
		return nil
	}
	w.seeing.Go(func() { p.witness(w.ctx) })
	return p
}

// open opens the session of a process that has a clock and a net.
func (p *process) open() (err error) {
	if p.m, err = lease.NewManager(p.net, lease.Options{TTL: ttl, Clock: p.clk}); err != nil {
		p.w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	p.Session, err = p.m.OpenSession(ctx)
	return err
}

func (p *process) close() {
	p.clk.Resume()
	if err := errors.Join(p.m.Close(), p.net.Close()); err != nil {
		p.w.t.Error(err)
	}
}

// live lets some programs of a process use the lock while something befalls it.
func (p *process) live(client int, rng *rand.Rand, use func(*lease.Session, *rand.Rand) (user, error)) {
	var wg sync.WaitGroup
	for i := range 2 {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() {
			for range 5 {
				p.once(2*client+i, rng, use)
				time.Sleep(time.Duration(rng.Int64N(int64(ttl / 2))))
			}
		})
	}
	time.Sleep(time.Duration(rng.Int64N(int64(2 * ttl))))
	switch rng.IntN(4) {
	case 0: // it dies
		p.outage.Start()
	case 1: // it is cut off for a while
		p.outage.Start()
		time.Sleep(time.Duration(rng.Int64N(int64(2 * ttl))))
		p.outage.End()
	case 2: // it is stopped for a while: no timer fires
		p.clk.Pause()
		time.Sleep(time.Duration(rng.Int64N(int64(2 * ttl))))
		p.clk.Resume()
	}
	wg.Wait()
	p.close()
}

// once uses the lock once, in some way.
func (p *process) once(client int, rng *rand.Rand, use func(*lease.Session, *rand.Rand) (user, error)) {
	u, err := use(p.Session, rng)
	if err != nil {
		p.w.t.Error(err)
		return
	}
	if p.Check() != nil {
		return // it has lost its session
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(6*ttl))))
	defer cancel()
	acquire, tries := u.lock, rng.IntN(2) == 0 || p.w.tries
	if tries {
		acquire = u.try
	}
	call := p.w.h.Call(client, u.weight)
	over := func() {} // its turn, if it takes one
	if u.turns {
		over = call.InTurn().Settled
	}
	h, err := acquire(ctx)
	if err == nil {
		p.hold(rng, client, u, h, call.Granted(h.Token(), h.Slot()), over)
		return
	}
	var held *lock.HeldError
	refused := tries && errors.As(err, &held) // a wait whose time is over says who held it when it last looked
	if refused && held.Waiting == 0 {
		call.Refused()
	}
	doubt := !refused || p.w.bad // even a try may have sent a write, and got no answer
	if doubt {
		p.whenGone(call.GivenUp().Settled)
	}
	if doubt || errors.Is(err, store.ErrUnknownOutcome) { // of the write that gives the turn back
		p.whenGone(over)
		return
	}
	over()
}

// hold relies on a share for a while, in the end perhaps as a reader, and releases it, with its turn.
func (p *process) hold(rng *rand.Rand, client int, u user, h *lock.Hold, share *Share, over func()) {
	if valid := p.rely(rng, h); valid && u.down != nil {
		ctx, cancel := context.WithTimeout(context.Background(), ttl)
		defer cancel()
		call := p.w.h.Call(client, 1)
		reader, err := u.down(ctx, h)
		if err != nil {
			share.EndSince(call)
			p.whenGone(share.Freed)
			p.whenGone(call.GivenUp().Settled)
			return
		}
		h, share = reader, call.Traded(reader.Token())
		p.rely(rng, h)
	}
	share.End()
	// It may be forgotten, and end with the session.
	if rng.IntN(8) != 0 && h.Release(context.Background()) == nil {
		share.Freed()
		over()
		return
	}
	p.whenGone(share.Freed)
	p.whenGone(over)
}

// rely relies on a hold for a while, at most as long as it is valid, and reports whether it is to the end.
func (p *process) rely(rng *rand.Rand, h *lock.Hold) bool {
	for work := time.Duration(rng.Int64N(int64(ttl))); work > 0; {
		left := time.Duration(float64(h.ValidUntil().Sub(p.clk.Now())) / p.rate) // of true time
		if left <= 0 || h.Context().Err() != nil {
			p.w.mu.Lock()
			defer p.w.mu.Unlock()
			p.w.lost++
			return false
		}
		// No longer than to the end of validity: a process that is stopped hears of no context.
		pause := min(work, left)
		select {
		case <-time.After(pause):
			work -= pause
		case <-h.Context().Done():
		}
	}
	return h.Check() == nil
}

// run lets processes contend for one lock, and returns what they saw.
func run(t *testing.T, seed uint64, history func() *History, use func(*lease.Session, *rand.Rand) (user, error)) (h *History, lost int) {
	h = history()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0x10c5))
		w := &world{t: t, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)}), ageless: rng.IntN(2) == 0, bad: rng.IntN(2) == 0, h: h}
		w.tries = rng.IntN(4) == 0
		var stop context.CancelFunc
		w.ctx, stop = context.WithCancel(context.Background())
		for i := range 4 {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			w.wg.Go(func() {
				for range 2 { // one life after the other
					if p := w.start(rng); p != nil {
						p.live(i, rng, use)
					}
				}
			})
		}
		w.wg.Wait()
		stop()
		w.seeing.Wait()
		lost = w.lost
	})
	return h, lost
}

var (
	seeds = flag.Uint64("locks.seeds", 100, "how many seeds TestHistories tries")
	first = flag.Uint64("locks.seed", 0, "the first of them")
)

// What users see of each lock is what a lock would show, whatever network, clocks, stops and deaths do. A seed decides on those
// and on what users do, but not on how goroutines are scheduled: a failure may take a few tries to come back.
func TestHistories(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var sum Counts
			lost := 0
			for seed := *first; seed < *first+*seeds; seed++ {
				h, n := run(t, seed, k.history, k.use)
				if err := h.Check(time.Minute); err != nil {
					t.Fatalf("seed %d: %v\nagain: go test ./internal/proof/sim/locks -run TestHistories -locks.seeds 1 -locks.seed %d", seed, err, seed)
				}
				c := h.Counts()
				sum = Counts{sum.Granted + c.Granted, sum.Refused + c.Refused, sum.GivenUp + c.GivenUp, sum.Freed + c.Freed, sum.Settled + c.Settled, sum.Traded + c.Traded}
				lost += n
			}
			t.Logf("%+v, %d lost", sum, lost)
			if *seeds < 100 {
				return
			}
			if sum.Granted < 400 || sum.Refused < 100 || sum.GivenUp < 100 || sum.Freed < 200 || sum.Settled < 50 || lost < 10 {
				t.Error("too little of something")
			}
			if downgraded := strings.HasSuffix(k.name, "downgraded"); downgraded != (sum.Traded >= 100) {
				t.Error("too few downgrades, or where nobody makes any")
			}
		})
	}
}
