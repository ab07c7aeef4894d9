package locks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// A caller that has its turn at a fair mutex, and is cut off, keeps callers away that take turns, and no others.
// Chance seldom meets that.
func TestATurnWhileOthersHoldTheMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)}), h: Semaphore(1)}
		mutex := func(fair bool) (*process, *lock.Mutex) {
			p := &process{w: w, clk: clocktest.New(1)}
			p.net = faulty.Wrap(w.db.Open(), p.outage.Plan(nil))
			t.Cleanup(p.close)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			mu, err := lock.NewMutex(p.Session, "m", lock.MutexOptions{Fair: fair})
			if err != nil {
				t.Fatal(err)
			}
			return p, mu
		}
		_, a := mutex(false)
		p, b := mutex(true)
		_, c := mutex(true)
		take := func(client int, m *lock.Mutex) func() {
			call := w.h.Call(client, 1)
			h, err := m.TryLock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			share := call.Granted(h.Token(), h.Slot())
			return func() {
				share.End()
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
				share.Freed()
			}
		}
		free := take(1, a)
		served := make(chan struct{})
		go func() {
			defer close(served)
			call := w.h.Call(2, 1)
			turn := call.InTurn()
			h, err := b.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			share := call.Granted(h.Token(), h.Slot())
			share.End()
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
			share.Freed()
			turn.Settled()
		}()
		time.Sleep(time.Second)
		p.outage.Start()
		free()
		call := w.h.Call(3, 1)
		turn := call.InTurn()
		if _, err := c.TryLock(t.Context()); !errors.Is(err, lease.ErrHeld) {
			t.Fatalf("beside one that has its turn: %v", err)
		}
		call.Refused()
		turn.Settled()
		take(1, a)()
		p.outage.End()
		<-served
		if err := w.h.Check(time.Minute); err != nil {
			t.Error(err)
		}
	})
}
