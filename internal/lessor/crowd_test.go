package lessor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// crowd is what the holders of one name believe.
type crowd struct {
	t  *testing.T
	mu sync.Mutex
	in map[string]Grant // by holder: who relies on it
}

func (c *crowd) enter(now clock.Instant, holder string, g Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, o := range c.in {
		if o.ValidUntil > now && g.ValidUntil > now {
			c.t.Errorf("%s holds under %d while %s does under %d", holder, g.Record.Token, other, o.Record.Token)
		}
	}
	c.in[holder] = g
}

func (c *crowd) leave(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.in, holder)
}

// Registries on one store, each behind a network that loses, delays and repeats: never do two holders rely on one name at a
// time, and when the faults stop everybody is served.
func TestCrowd(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { crowded(t, w, seed) })
		})
	}
}

func crowded(t *testing.T, w *world, seed uint64) {
	w.Ageless = seed%2 == 1
	rates := faulty.Rates{
		Delay: 0.2, ReplyDelay: 0.2, Refuse: 0.05, Drop: 0.03, LoseReply: 0.06, ApplyLate: 0.05, ApplyTwice: 0.03, Silent: 0.3,
		MaxDelay: 4 * time.Second,
	}
	var registries []*Registry
	var nets []*faulty.Store
	for i := range uint64(3) {
		r, net := w.registry()
		net.SetPlan(faulty.Random(seed*3+i, rates))
		registries, nets = append(registries, r), append(nets, net)
	}
	c := &crowd{t: t, in: map[string]Grant{}}
	var wg sync.WaitGroup
	served := make([]int, 9)
	for i := range served {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range 30 {
				if c.turn(w, registries[i%3], rnd, fmt.Sprintf("%d/%d", i, n)) {
					served[i]++
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range served {
		total += n
	}
	if total < 20 {
		t.Errorf("only %d of 270 requests were served", total)
	}
	for i, r := range registries {
		nets[i].SetPlan(nil)
		g, err := r.Acquire(context.Background(), Request{Key: "job", Owner: fmt.Sprint("last ", i), TTL: ttl, Wait: 3 * ttl})
		if err != nil {
			t.Fatalf("when the faults had stopped: %v; the record is %+v", err, w.Get("job"))
		}
		released(t, r, g.Record)
	}
}

// turn is one holder's: it acquires, renews now and then, and releases, forgets to, or leaves the queue.
func (c *crowd) turn(w *world, r *Registry, rnd *rand.Rand, holder string) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rnd.IntN(4) == 0 {
		defer w.Clk.AfterFunc(time.Duration(rnd.IntN(10_000))*time.Millisecond, cancel)()
	}
	req := Request{Key: "job", Owner: holder, TTL: ttl, Wait: time.Duration(rnd.IntN(60)) * time.Second}
	g, err := r.Acquire(ctx, req)
	if err != nil {
		return false
	}
	defer c.leave(holder)
	for c.enter(w.Clk.Now(), holder, g); w.Clk.Now() < g.ValidUntil; c.enter(w.Clk.Now(), holder, g) {
		time.Sleep(time.Duration(rnd.IntN(6000)) * time.Millisecond)
		if rnd.IntN(3) == 0 {
			break
		}
		c.leave(holder)
		renewed, err := r.Renew(context.Background(), "job", holder, g.Record.Token, 0, nil)
		var lost *lease.LostError
		switch {
		case err == nil:
			g = renewed
		case errors.Is(err, fence.ErrStale), errors.As(err, &lost):
			return true
		case !errors.Is(err, store.ErrUnknownOutcome):
			continue // it may still be valid
		}
	}
	c.leave(holder)
	if rnd.IntN(5) > 0 {
		_, _ = r.Release(context.Background(), "job", holder, g.Record.Token, "released", nil)
	}
	return true
}
