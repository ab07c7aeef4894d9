package lock

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Six who take light shares again and again don't keep a heavy one waiting for more than a few TTLs, nor do heavy ones keep a light one waiting.
func TestFinding_K7_NoWeightStarves(t *testing.T) {
	for _, c := range []struct {
		name      string
		one, many int // weights
	}{{"heavy among light", 5, 1}, {"light among heavy", 1, 5}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				all := &ledger{t: t, limit: 5}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				use := func(ctx context.Context, sem *Semaphore, weight int, work time.Duration) error {
					h, err := sem.Acquire(ctx, weight)
					if err != nil {
						return err
					}
					all.enter(h, weight, "")
					time.Sleep(work)
					all.leave(h, weight)
					return h.Release(context.WithoutCancel(ctx))
				}
				for i := range 6 {
					sem, rng := semaphore(t, w.process(nil).Session, 5, false), rand.New(rand.NewPCG(7, uint64(i)))
					running.Go(func() {
						for use(ctx, sem, c.many, time.Second+time.Duration(rng.Int64N(int64(time.Second)))) == nil {
						}
					})
				}
				time.Sleep(2 * ttl)
				sem := semaphore(t, w.process(nil).Session, 5, false)
				for range 3 {
					limited, stop := context.WithTimeout(ctx, 4*ttl)
					if err := use(limited, sem, c.one, 0); err != nil {
						t.Errorf("a share of weight %d among those of weight %d: %v", c.one, c.many, err)
					}
					stop()
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// Before it has waited for a TTL, a share waits in no line: others that fit pass it.
func TestFinding_K7_ALineBeginsAfterATTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		light := semaphore(t, p.Session, 3, false)
		first, err := light.Acquire(t.Context(), 1)
		must(t, first, err)
		granted := make(chan error, 1)
		heavy := semaphore(t, q.Session, 3, false)
		go func() {
			_, err := heavy.Acquire(t.Context(), 3)
			granted <- err
		}()
		time.Sleep(ttl - time.Second)
		second, err := light.TryAcquire(t.Context(), 1)
		must(t, second, err)
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second + ttl/3)
		if h, err := light.TryAcquire(t.Context(), 1); err == nil {
			t.Errorf("%v was granted before a share that has waited for more than a TTL", h.Sequencer())
			_ = h.Release(t.Context())
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Error(err)
		}
	})
}
