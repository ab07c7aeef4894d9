package sim_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

var errRefused = errors.New("connection refused")

// drawRate draws a clock's rate within the bound that the margin covers. The edges find more than the middle.
func drawRate(rng *rand.Rand) float64 {
	return []float64{1, 0.89, 1.11, 0.89 + 0.22*rng.Float64()}[rng.IntN(4)]
}

// drawPlan draws what the network does.
func drawPlan(rng *rand.Rand, ttl time.Duration) faulty.Plan {
	often := func(most float64) float64 { return most * max(0, rng.Float64()*2-1) }
	return faulty.Random(rng.Uint64(), faulty.Rates{
		Delay: rng.Float64(), ReplyDelay: rng.Float64(), Refuse: often(0.2), Drop: often(0.2), LoseReply: often(0.3),
		ApplyLate: often(0.2), ApplyTwice: often(0.2), Silent: rng.Float64(),
		MaxDelay: []time.Duration{ttl / 500, ttl / 50, ttl / 50, ttl / 5, ttl}[rng.IntN(5)],
	})
}

// faults injects faults for d.
func (w *live) faults(d time.Duration) {
	operator := w.history.Client(w.db.Open())
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		time.Sleep(time.Duration(w.rng.Int64N(int64(w.ttl / 2))))
		p := w.nodes[w.rng.IntN(len(w.nodes))]
		for_ := time.Duration(w.rng.Int64N(int64(2 * w.ttl)))
		switch w.rng.IntN(12) {
		case 0, 1:
			p.stop(for_, false)
		case 2:
			p.stop(for_, true)
		case 3:
			p.setRate(drawRate(w.rng))
		case 4:
			p.clk.StepWall(time.Duration(w.rng.Int64N(int64(2*time.Hour))) - time.Hour)
		case 5, 6:
			w.cut(p, for_)
		case 7:
			for _, p := range w.nodes {
				w.cut(p, for_/2)
			}
		case 8:
			p.setPlan(drawPlan(w.rng, w.ttl))
		case 9, 10:
			w.evict(operator, w.keys[w.rng.IntN(len(w.keys))])
		case 11:
			w.restart(p)
		}
	}
}

// stop pauses the process for d of true time, or suspends its machine: then its clock stands still, and is put right when
// it goes on.
func (p *process) stop(d time.Duration, suspend bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return
	}
	stopped := make(chan struct{})
	p.stopped, p.frozen = stopped, suspend
	p.clk.Pause()
	if suspend {
		p.clk.SetRate(0)
	}
	p.w.logf("%v is stopped for %v (suspended: %v)", p, d, suspend)
	p.w.wg.Go(func() {
		time.Sleep(d)
		p.w.logf("%v goes on", p)
		p.mu.Lock()
		defer p.mu.Unlock()
		if suspend {
			p.clk.Jump(time.Duration(float64(d) * p.rate))
			p.clk.SetRate(p.rate)
		}
		p.stopped, p.frozen = nil, false
		p.clk.Resume()
		close(stopped)
	})
}

// cut takes the network away from p for d.
func (w *live) cut(p *process, d time.Duration) {
	if w.rng.IntN(2) == 0 {
		p.outage.Start()
	} else {
		p.outage.StartRefusing(errRefused)
	}
	w.logf("%v is cut off for %v", p, d)
	w.wg.Go(func() {
		time.Sleep(d)
		p.outage.End()
	})
}

// restart closes the manager of p, whatever it is doing, and starts another one.
func (w *live) restart(p *process) {
	p.mu.Lock()
	old, net := p.m, p.net
	p.mu.Unlock()
	w.logf("%v is restarted", p)
	p.boot()
	w.wg.Go(func() {
		p.running()
		_ = old.Close()
		_ = net.Close()
	})
}

// evict breaks the present term of key. With a grace of its own, two may hold for a while.
func (w *live) evict(st store.Store, key string) {
	ctx := context.Background()
	rec, err := store.Load(ctx, st, key)
	if err != nil || rec.Owner == "" {
		return
	}
	e := drive.EndTerm{Token: rec.Token, By: "operator"}
	if w.rng.IntN(3) == 0 {
		e.Grace = w.ttl / 20
	}
	_, err = drive.Break(ctx, st, key, e)
	w.logf("an operator breaks %s, token %d, grace %v: %v", key, rec.Token, e.Grace, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	until := time.Now().Add(time.Duration(float64(w.ttl) / 0.89))
	switch {
	case errors.Is(err, fence.ErrStale):
	case err != nil:
		w.t.Errorf("Break: %v", err)
	default:
		w.broken[key+"/"+rec.Token.String()] = until
		if e.Grace != 0 {
			w.excused[key] = until
		}
	}
}

// calmDown ends the faults.
func (w *live) calmDown() {
	w.logf("calm: no faults from here on")
	for _, p := range w.nodes {
		p.setPlan(nil)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm, w.calmAt = true, time.Now().Add(2*w.ttl) // by then the last stop is over, and the last outage
}

func (g *gated) Get(ctx context.Context, key string) (store.Record, error) {
	g.p.running()
	rec, err := g.inner.Get(ctx, key)
	return g.hear(rec), err
}

func (g *gated) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	g.p.running()
	got, err := g.inner.Put(ctx, rec)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		err = &store.ConflictError{Current: g.hear(conflict.Current)}
	}
	return g.hear(got), err
}

func (g *gated) Delete(ctx context.Context, key, version string) error {
	g.p.running()
	defer g.p.running()
	return g.inner.Delete(ctx, key, version)
}

func (g *gated) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return g.inner.List(ctx, prefix)
}

func (g *gated) Wait(ctx context.Context, key, version string) (store.Record, error) {
	g.p.running()
	rec, err := store.Wait(ctx, g.inner, key, version)
	return g.hear(rec), err
}

func (g *gated) Close() error { return g.inner.Close() }
