package ids

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

const (
	ttl    = 5 * time.Minute
	window = 10 * time.Minute
	pool   = "machines"
)

// process is a program on a node, from its start to its end.
type process struct {
	n    *node
	net  *faulty.Store
	m    *lease.Manager
	s    *lease.Session
	dead atomic.Bool // nothing of it reaches the network

	h     *identity.Hold
	g     *flake.Generator[flake.ID]
	plain *plain
	ids   spans // of g
	seen  time.Time
}

// live has one process after the other run on the node, until ctx is done.
func (n *node) live(ctx context.Context) {
	for ctx.Err() == nil {
		n.sleep(ctx, n.upTo(2*time.Hour)) // it is off
		p, err := n.start()
		if err != nil {
			n.w.t.Error(err)
			return
		}
		p.run(ctx)
	}
}

func (n *node) start() (*process, error) {
	p := &process{n: n}
	st := store.Store(n.w.db.Open())
	if n.rng.IntN(2) == 0 {
		st = faulty.Ageless(st)
	}
	usual := n.w.network(n.rng.Uint64())
	if n.w.fine && n.rng.IntN(2) == 0 {
		usual = nil
	}
	network := n.cut.Plan(n.w.outage.Plan(usual))
	p.net = faulty.Wrap(st, func(op faulty.Op) faulty.Fault {
		if p.dead.Load() {
			return faulty.Fault{Drop: true}
		}
		return network(op)
	})
	var err error
	p.m, err = lease.NewManager(stopping{p.net, n}, lease.Options{TTL: ttl, Clock: n.clk, Name: n.name})
	n.w.happened(started)
	return p, err
}

// run claims value after value, and makes ids, until the process ends.
func (p *process) run(ctx context.Context) {
	for end := false; !end && ctx.Err() == nil; {
		if !p.claim(ctx) {
			continue
		}
		life := p.n.upTo(2 * 24 * time.Hour)
		p.work(ctx, life)
		end = p.leave(ctx)
		p.n.w.ours.enter(p.h.Number(), p.ids)
		p.ids = nil
	}
	if err := errors.Join(p.m.Close(), p.net.Close()); err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
		p.n.w.t.Error(err)
	}
}

// claim tries to get a value.
func (p *process) claim(ctx context.Context) bool {
	var err error
	if p.s == nil || p.s.Check() != nil {
		if p.s, err = p.m.OpenSession(ctx); err != nil {
			p.n.sleep(ctx, time.Minute)
			return false
		}
	}
	o := identity.Options{Values: identity.Values{Range: p.n.w.values()}, Window: window}
	if p.n.rng.IntN(2) == 0 || p.n.w.without == noFloor { // the floor of its own one is ahead most often
		o.Name = p.n.name
	}
	limited, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if p.h, err = identity.Claim(limited, p.s, pool, o); err != nil {
		if errors.Is(err, identity.ErrExhausted) {
			p.n.w.happened(exhausted)
		}
		p.n.sleep(ctx, time.Minute+p.n.upTo(10*time.Minute))
		return false
	}
	p.n.w.happened(claimed)
	if p.g, err = p.generator(); err != nil {
		p.n.w.t.Error(err)
		return false
	}
	p.plain = &plain{worker: p.h.Number(), now: p.n.now}
	return true
}

// generator makes ids of the value that is held. Its look at the clock serves for the usual time, for none, or, as if the runtime's
// timers were late, for an hour. Its time is that of the hold, as a rule, or the wall clock's.
func (p *process) generator() (*flake.Generator[flake.ID], error) {
	now := p.n.now
	if h := p.h; p.n.rng.IntN(3) > 0 && p.n.w.without == none {
		now = func() time.Time { return p.n.look(h.Now) }
	}
	o := flake.Options{Now: now, Lag: []time.Duration{0, -1, time.Hour}[p.n.rng.IntN(3)]}
	return flake.New[flake.ID](p.n.w.layout, p.h.Number(), p.window(), o)
}

// patience is how long a process puts up with a value that it can make no ids of.
const patience = 20 * time.Minute

// work makes batches of ids for as long as life, unless there is a reason to end before: the lease, if the process looks after it, or
// that no id was made for long.
func (p *process) work(ctx context.Context, life time.Duration) {
	careless := p.n.rng.IntN(3) == 0
	start := p.n.clk.Now()
	for last := start; p.n.clk.Now().Sub(start) < life && ctx.Err() == nil; {
		p.rest(ctx)
		if !careless && p.h.Check() != nil {
			p.n.w.happened(leaseLost)
			return
		}
		if p.n.rng.IntN(500) == 0 {
			p.n.trap = 1 + p.n.rng.IntN(3)
		}
		size := 1 + p.n.rng.IntN(2*p.n.w.batch)
		if p.h.Check() == nil {
			p.snowflakes(size)
		} else {
			p.n.w.happened(lateBatch)
		}
		if p.batch(size) {
			last = p.n.clk.Now()
		}
		if p.n.clk.Now().Sub(last) > patience {
			p.n.w.happened(givenUp)
			return
		}
	}
}

// rest waits for the next batch. Most of them begin with a second of the wall clock, as those of tickers and timetables do.
func (p *process) rest(ctx context.Context) {
	p.n.sleep(ctx, time.Duration(p.n.rng.Int64N(int64(2*meanRest))))
	if p.n.rng.IntN(4) > 0 {
		wall := p.n.clk.Wall()
		p.n.sleep(ctx, wall.Truncate(time.Second).Add(time.Second).Sub(wall))
	}
}

const meanRest = 30 * time.Second

// batch makes ids by production's generator, and reports whether there were any.
func (p *process) batch(size int) bool {
	p.forget()
	for made := 0; made < size; {
		n, err := p.some(min(size-made, 4096))
		made += n
		if err == nil {
			continue
		}
		switch {
		case errors.As(err, new(*flake.WindowError)):
			p.n.w.happened(windowEnds)
		case errors.As(err, new(*flake.AheadError)):
			p.n.w.happened(tooFarAhead)
		default:
			p.n.w.t.Error(err)
		}
		return made > 0
	}
	return true
}

// some makes up to n ids, in one of the ways.
func (p *process) some(n int) (made int, err error) {
	if p.n.rng.IntN(2) == 0 {
		ids, err := p.g.NextN(n)
		for _, id := range ids {
			p.enter(id)
		}
		return len(ids), err
	}
	for ; made < n; made++ {
		id, err := p.g.Next()
		if err != nil {
			return made, err
		}
		p.enter(id)
	}
	return made, nil
}

func (p *process) enter(id flake.ID) {
	node, n, err := numbered(&p.n.w.layout, id)
	if err != nil || node != p.h.Number() {
		p.n.w.t.Errorf("id %v of node %d, by node %d: %v", id, node, p.h.Number(), err)
	}
	p.ids = p.ids.add(n)
}

// snowflakes makes ids by Twitter's generator.
func (p *process) snowflakes(size int) {
	var s spans
	for range size {
		n, ok := p.plain.next()
		if !ok {
			break
		}
		s = s.add(n)
	}
	p.n.w.plain.enter(p.plain.worker, s)
}

// leave ends the use of a value, in one of the ways in which programs do, and reports whether that ends the process.
func (p *process) leave(ctx context.Context) (end bool) {
	way := p.n.rng.IntN(8)
	if way == 0 || way == 1 {
		p.n.w.happened(crashed)
		p.dead.Store(true)
		return true
	}
	used := p.g.Stop()
	switch way {
	case 2: // it forgets the value, and holds it for as long as its session
		p.n.w.happened(forgotten)
		return p.n.rng.IntN(2) == 0
	case 3:
		p.n.w.happened(sessionClosed)
		_ = p.s.Close(context.WithoutCancel(ctx))
		return false
	case 4:
		used = time.Time{} // it doesn't know
	}
	if err := p.h.Release(ctx, used); err != nil {
		p.n.w.happened(releaseFailed)
		return false
	}
	p.n.w.happened(released)
	return p.n.rng.IntN(3) == 0
}
