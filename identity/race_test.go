package identity

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store/faulty"
)

// Ten thousand claimants of 1,024 values at one instant: each value has one holder, the others learn that there is none, for
// fewer than 3 writes a claim; and few of them list the pool.
func TestTenThousandClaimants(t *testing.T) {
	const processes, each, size = 100, 100, 1024
	synctest.Test(t, func(t *testing.T) {
		w := world{t, leasetest.New(t)}
		var writes, reads, lists, got, exhausted atomic.Int64
		plan := func(op faulty.Op) faulty.Fault {
			switch {
			case !strings.Contains(op.Key, "identity/"): // sessions
			case op.Kind == faulty.Put:
				writes.Add(1)
			case op.Kind == faulty.List && op.Key == pools.Key("machines", ""):
				lists.Add(1)
			case op.Kind == faulty.List: // by a session that looks at its leases, whose names have the 1 in common, too
			default:
				reads.Add(1)
			}
			return faulty.Fault{Delay: rand.N(20 * time.Millisecond), ReplyDelay: rand.N(20 * time.Millisecond)}
		}
		var mu sync.Mutex
		holders := map[string]fence.Token{}
		var all []*process
		for range processes {
			all = append(all, w.process(plan))
		}
		var wg sync.WaitGroup
		for _, p := range all {
			for range each {
				wg.Go(func() {
					h, err := Claim(t.Context(), p.s, "machines", Options{Values: Values{Range: "10000-11023"}, Window: time.Hour})
					if err != nil {
						if !errors.Is(err, ErrExhausted) {
							t.Error(err)
						}
						exhausted.Add(1)
						return
					}
					got.Add(1)
					mu.Lock()
					defer mu.Unlock()
					if holders[h.Value()] != 0 || h.Check() != nil {
						t.Errorf("%s has two holders, or none: %v", h.Value(), h.Check())
					}
					holders[h.Value()] = h.Token()
				})
			}
		}
		wg.Wait()
		t.Logf("%d claims: %d values, %d writes, %d reads, %d lists", processes*each, got.Load(), writes.Load(), reads.Load(), lists.Load())
		if got.Load() != size || exhausted.Load() != processes*each-size {
			t.Errorf("%d values were claimed of %d, and %d claims found none", got.Load(), size, exhausted.Load())
		}
		if n := writes.Load(); n >= 3*processes*each {
			t.Errorf("%d writes for %d claims", n, processes*each)
		}
		if n := lists.Load(); n > 5 {
			t.Errorf("the pool was listed %d times", n)
		}
	})
}

// One claim after the other costs two writes, and one now and then for the index; its reads don't grow with the pool, which is listed seldom.
func TestCostOfAClaim(t *testing.T) {
	for _, size := range []int{64, 4096} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{t, leasetest.New(t)}
				p := w.process(nil)
				o := Options{Values: Values{Range: fmt.Sprintf("1-%d", size)}, Window: maxWindow}
				p.claim(o)
				puts, gets, claims := p.Net.Count(faulty.Put), p.Net.Count(faulty.Get), size*7/8
				for range claims {
					p.claim(o)
				}
				puts, gets = p.Net.Count(faulty.Put)-puts, p.Net.Count(faulty.Get)-gets
				t.Logf("%.2f writes and %.2f reads a claim", float64(puts)/float64(claims), float64(gets)/float64(claims))
				if puts >= 3*claims || gets > 5*claims || p.Net.Count(faulty.List) > 2 {
					t.Errorf("%d claims cost %d writes, %d reads, and %d lists", claims, puts, gets, p.Net.Count(faulty.List))
				}
			})
		})
	}
}

// book knows who relies on what, and which times each holder could have stamped.
type book struct {
	t      *testing.T
	mu     sync.Mutex
	valid  map[string]*Hold
	spans  map[string][]span
	claims int
}

type span struct{ from, to time.Time }

func (b *book) enter(h *Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if other := b.valid[h.Value()]; other != nil && other.Check() == nil && h.Check() == nil {
		b.t.Errorf("%s is held under token %d and token %d", h.Value(), other.Token(), h.Token())
	}
	b.valid[h.Value()] = h
	b.claims++
}

func (b *book) leave(h *Hold, to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.valid[h.Value()] == h {
		delete(b.valid, h.Value())
	}
	b.spans[h.Value()] = append(b.spans[h.Value()], span{h.Floor(), to})
}

// check sees that no two holders of a value could have stamped one time.
func (b *book) check() {
	for value, spans := range b.spans {
		slices.SortFunc(spans, func(a, c span) int { return a.from.Compare(c.from) })
		end := time.Time{}
		for _, s := range spans {
			if s.from.Before(end) {
				b.t.Errorf("%s: the window from %v begins before the end of another one, %v", value, s.from, end)
			}
			if s.to.After(end) {
				end = s.to
			}
		}
	}
}

// Whatever the network and the clocks do: never two valid holders of one value, never two overlapping windows.
func TestBadNetworkAndClocks(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w world) {
				b := &book{t: t, valid: map[string]*Hold{}, spans: map[string][]span{}}
				rates := faulty.Rates{
					Delay: 0.3, ReplyDelay: 0.3, Refuse: 0.01, Drop: 0.01, LoseReply: 0.02, ApplyLate: 0.03, ApplyTwice: 0.03, Silent: 0.3,
					MaxDelay: 700 * time.Millisecond,
				}
				var wg sync.WaitGroup
				for i := range uint64(8) {
					random := faulty.Random(seed*100+i, rates)
					p := w.process(func(op faulty.Op) faulty.Fault {
						f := random(op)
						f.ApplyLate *= 40 // long after the caller has gone on
						return f
					})
					rng := rand.New(rand.NewPCG(seed, i))
					wg.Go(func() {
						for range 25 {
							b.use(p, rng)
						}
						if i < 2 {
							p.Cut()
						}
					})
				}
				wg.Wait()
				b.check()
				if b.claims < 20 {
					t.Errorf("only %d claims succeeded", b.claims)
				}
			})
		})
	}
}

// use claims a value once, holds it for a while, and loses or releases it.
func (b *book) use(p *process, rng *rand.Rand) {
	if p.s.Check() != nil {
		p.open()
	}
	switch rng.IntN(8) {
	case 0:
		p.Clk.StepWall(time.Duration(rng.IntN(48)-24) * time.Hour)
	case 1:
		p.Clk.StepWall(time.Duration(rng.IntN(120)-60) * time.Second)
	case 2:
		p.Clk.SetRate(0.95 + rng.Float64()/10)
	}
	o := Options{Values: Values{Range: "1-4"}, Window: time.Duration(1+rng.IntN(60)) * time.Second}
	if rng.IntN(2) == 0 {
		o.Name = fmt.Sprintf("node-%d", rng.IntN(6))
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 40*time.Second)
	defer cancel()
	h, err := Claim(ctx, p.s, "machines", o)
	if err != nil {
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
		return
	}
	b.enter(h)
	select {
	case <-h.Context().Done():
	case <-time.After(1 + time.Duration(rng.IntN(60))*time.Second): // see gate/race_test.go for why never 0
	}
	last := h.Ceiling() // an id may have been made up to there
	switch rng.IntN(3) {
	case 0: // it forgets to release the value, or is paused for long
		b.leave(h, last)
		time.Sleep(time.Duration(rng.IntN(40)) * time.Second)
		_ = h.Release(b.t.Context(), last)
	case 1:
		b.leave(h, last)
		_ = h.Release(b.t.Context(), time.Time{})
	default:
		used := h.Floor().Add(time.Duration(rng.Int64N(int64(last.Sub(h.Floor())) + 1)))
		b.leave(h, used)
		_ = h.Release(b.t.Context(), used)
	}
}
