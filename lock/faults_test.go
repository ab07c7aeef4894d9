package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// bad is a network that loses requests and replies, delays them, and delivers writes late or twice, until it is told to stop.
func bad(seed uint64, calm *atomic.Bool) faulty.Plan {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 7))
	return func(faulty.Op) faulty.Fault {
		mu.Lock()
		defer mu.Unlock()
		f := faulty.Fault{Delay: time.Duration(rng.IntN(40)) * time.Millisecond, ReplyDelay: time.Duration(rng.IntN(40)) * time.Millisecond}
		if calm.Load() {
			return f
		}
		switch rng.IntN(20) {
		case 0:
			f.Drop = true
		case 1:
			f.LoseReply = true
		case 2:
			f.ApplyLate = time.Duration(rng.IntN(20)) * time.Second
		case 3:
			f.ApplyTwice = true
			f.ApplyLate = time.Duration(rng.IntN(5000)) * time.Millisecond
		case 4:
			f.Err = errors.New("connection refused")
		case 5:
			f.LoseReply, f.Silent = true, true
		}
		return f
	}
}

// Whatever the network does, the weights that are valid at one instant never add up to more than the limit, and when it is well
// again everything that was given up, or held by who died, is free.
func TestSemaphoreOverABadNetwork(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var calm atomic.Bool
				book := &ledger{t: t, limit: 3}
				var wg sync.WaitGroup
				var held atomic.Int64
				for i := range 6 {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					p := w.process(bad(seed*100+uint64(i), &calm))
					wg.Go(func() {
						for range 30 {
							if p.Check() != nil { // a process that lost its session opens another one
								s, err := p.Manager().OpenSession(t.Context())
								if err != nil {
									time.Sleep(time.Second)
									continue
								}
								p.Session = s
							}
							if useOnce(t, p, rng, book, seed%2 == 0) {
								held.Add(1)
							}
						}
						if i == 0 {
							p.Cut()
						}
					})
				}
				wg.Wait()
				calm.Store(true)
				if held.Load() < 8 {
					t.Errorf("only %d shares were ever held", held.Load())
				}
				ctx, cancel := context.WithTimeout(t.Context(), 4*ttl)
				defer cancel()
				if _, err := semaphore(t, w.process(nil).Session, 3, seed%2 == 0).Acquire(ctx, 3); err != nil {
					t.Errorf("it isn't free when all is well: %v", err)
				}
			})
		})
	}
}

// useOnce acquires a share, unless that takes too long, holds it for a while, and releases it.
func useOnce(t *testing.T, p *process, rng *rand.Rand, book *ledger, fair bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(60))*time.Second)
	defer cancel()
	weight := 1 + rng.IntN(3)
	h, err := semaphore(t, p.Session, 3, fair).Acquire(ctx, weight)
	if err != nil {
		return false
	}
	book.enter(h, weight, "")
	var once sync.Once
	leave := func() { once.Do(func() { book.leave(h, weight) }) }
	stop := context.AfterFunc(h.Context(), leave)
	defer stop()
	select {
	case <-time.After(1 + time.Duration(rng.IntN(10))*time.Second): // see gate/race_test.go for why never 0
	case <-h.Context().Done():
	}
	leave()
	if err := h.Release(t.Context()); err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("release: %v", err)
	}
	return true
}

// A write of the roster that arrives after its acquisition was given up is taken back.
func TestAcquisitionGivenUpWhileItsWriteIsOnItsWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		late := false
		p := w.process(func(op faulty.Op) faulty.Fault {
			if late && op.Kind == faulty.Put && op.Key == "licences" {
				late = false
				return faulty.Fault{ApplyLate: 10 * time.Second, Silent: true}
			}
			return faulty.Fault{}
		})
		q := w.process(nil)
		late = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := semaphore(t, p.Session, 1, false).Acquire(ctx, 1); err == nil {
			t.Fatal("acquired without an answer")
		}
		time.Sleep(20 * time.Second) // it has arrived, if it could
		if h, err := semaphore(t, q.Session, 1, false).TryAcquire(t.Context(), 1); err != nil || h.Token() == 0 {
			t.Errorf("a share that nobody wants is kept by a living session: %v", err)
		}
	})
}

// The next term's token is above that of one who is paused, so that what is guarded refuses it.
func TestGuardRefusesWhoLostItsShare(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1)
		must(t, h, err)
		p.Cut()
		got, err := semaphore(t, q.Session, 1, true).Acquire(t.Context(), 1)
		must(t, got, err)
		var mark fence.Mark
		old, now := h.Sequencer(), got.Sequencer()
		if old.Name != "licences#0" || now.Name != old.Name {
			t.Errorf("%s, %s", old.Name, now.Name)
		}
		if mark, err = mark.Admit(now.Name, now.Holder, now.Token); err != nil {
			t.Fatal(err)
		}
		if _, err := mark.Admit(old.Name, old.Holder, old.Token); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%v", err)
		}
	})
}
