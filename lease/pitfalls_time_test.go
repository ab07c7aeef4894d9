package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestPitfall_T1_DeadlineCountsFromBeforeTheRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: 3 * time.Second}, leasetest.Kind(faulty.Put)))
		l := n.Take("job")
		if l.Left() != validity-3*time.Second {
			t.Errorf("%v left of a claim whose answer took 3 s", l.Left())
		}
		renewed := time.Now()
		n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: 700 * time.Millisecond}, func(op faulty.Op) bool {
			renewed = time.Now()
			return op.Kind == faulty.Put
		}))
		before := l.ValidUntil()
		for l.ValidUntil() == before {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		if got := l.Left() + time.Since(renewed); got != validity {
			t.Errorf("a renewal counts for %v from when it was sent, want %v", got, validity)
		}
	})
}

// inFlight counts the requests that haven't come back.
type inFlight struct {
	store.Store
	now, all atomic.Int64
}

func (s *inFlight) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	s.now.Add(1)
	s.all.Add(1)
	defer s.now.Add(-1)
	return s.Store.Put(ctx, rec)
}

func (s *inFlight) Get(ctx context.Context, key string) (store.Record, error) {
	s.now.Add(1)
	s.all.Add(1)
	defer s.now.Add(-1)
	return s.Store.Get(ctx, key)
}

func TestPitfall_T2_AttemptsAreCappedByTheValidityLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.Host(nil)
		requests := &inFlight{Store: h.Net}
		// A renewal is sent after 4 s at least and once more after 7 s; the first copy is still awaited then, for as long as the lease lasts.
		n := h.Node(requests, lease.Options{Attempt: 3 * time.Second})
		l := n.Take("job")
		n.Outage.Start()
		requests.all.Store(0)
		time.Sleep(validity - 100*time.Millisecond)
		synctest.Wait()
		if requests.now.Load() != 2 || requests.all.Load() != 2 {
			t.Errorf("%d requests, %d of them under way, want two under way", requests.all.Load(), requests.now.Load())
		}
		time.Sleep(101 * time.Millisecond)
		lostWith(t, l, lease.CauseOutage)
		if requests.now.Load() != 0 {
			t.Error("a renewal outlives the lease")
		}
	})
}

func TestPitfall_T3_SuspensionCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		n.Clk.Pause() // no timer has fired yet when the machine wakes up
		n.Clk.Jump(time.Hour)
		if err := l.Check(); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Check right after a suspension: %v", err)
		}
		lostWith(t, l, lease.CauseExpired)
		n.Clk.Resume()
		time.Sleep(time.Minute)
		lostWith(t, l, lease.CauseExpired)
	})
}

func TestPitfall_T4_WallClocksDecideNothing(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		for _, ageless := range []bool{false, true} {
			inWorld(t, func(t *testing.T, w *world) {
				w.Ageless = ageless
				holder, taker := w.Node(lease.Options{}), w.Node(lease.Options{})
				l := holder.Take("job")
				wait := taker.Acquiring(t.Context(), "job")
				for _, clk := range []interface{ StepWall(time.Duration) }{taker.Clk, holder.Clk, w.Clk, taker.Clk, holder.Clk} {
					clk.StepWall(step)
					time.Sleep(20 * time.Second)
					valid(t, l)
					wait.Pending(t)
				}
				if _, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
					t.Errorf("TryAcquire: %v", err)
				}
				holder.Outage.Start()
				start := time.Now()
				holder.Clk.StepWall(-step)
				taker.Clk.StepWall(3 * step)
				next := wait.Wait(t, start, ttl+time.Millisecond)
				lostWith(t, l, lease.CauseOutage)
				if next.Token() <= l.Token() {
					t.Errorf("token %d after %d", next.Token(), l.Token())
				}
			})
		}
	}
}

func TestPitfall_T5_FractionsOfSecondsCount(t *testing.T) {
	for _, length := range []time.Duration{15900 * time.Millisecond, 10*time.Millisecond + time.Nanosecond, 12345678987 * time.Nanosecond} {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.Node(lease.Options{TTL: length})
			l := n.Take("job")
			if most := float64(length) * (1 - 0.2); float64(l.Left()) > most || float64(l.Left()) < most-2 {
				t.Errorf("TTL %v: %v left, want %v rounded down", length, l.Left(), time.Duration(most))
			}
			written, err := driver.Marshal(w.Get("job"))
			if err != nil {
				t.Fatal(err)
			}
			if rec, err := driver.Unmarshal(written); err != nil || rec.TTL < length {
				t.Errorf("TTL %v: %v in the record, %v", length, rec.TTL, err)
			}
			start := time.Now()
			_ = n.Close()
			wait := w.Node(lease.Options{}).Acquiring(t.Context(), "job")
			time.Sleep(length - time.Nanosecond)
			wait.Pending(t)
			wait.Wait(t, start, length+time.Millisecond)
		})
	}
}

func TestPitfall_T6_LossIsSeenByCheckAndByTheContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		looked, listened := n.Take("a"), n.Take("b")
		ctx := listened.Context()
		n.Outage.Start()
		deadline := looked.ValidUntil()
		n.Clk.Pause() // timers are late
		time.Sleep(deadline.Sub(n.Clk.Now()))
		if err := looked.Check(); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Check at the deadline, while timers are late: %v", err)
		}
		if looked.Context().Err() == nil {
			t.Error("the context goes on although Check has seen the loss")
		}
		n.Clk.Resume()
		time.Sleep(2 * time.Nanosecond) // an overdue timer of the fake clock takes one
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), lease.ErrLost) {
			t.Errorf("the context of who never called Check: %v", context.Cause(ctx))
		}
	})
}

func TestPitfall_T7_OwnershipWithoutValidityIsNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		ctx := l.Context()
		n.Clk.Pause()
		time.Sleep(validity + time.Second) // beyond its validity, within the record's TTL
		n.Clk.Resume()
		time.Sleep(2 * time.Nanosecond) // an overdue timer of the fake clock takes one
		synctest.Wait()
		if rec := w.Get("job"); rec.Owner != n.Holder() || rec.Token != l.Token() {
			t.Fatalf("the record: %+v", rec)
		}
		if ctx.Err() == nil {
			t.Error("the context goes on because the record still names the holder")
		}
		time.Sleep(time.Minute)
		lostWith(t, l, lease.CauseExpired)
	})
}

func TestPitfall_T8_AStoppedHolderIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		r := &resource{t: t}
		l := n.Take("job")
		r.admits(l)
		n.Clk.Pause()
		start := time.Now()
		next := w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, ttl+time.Millisecond)
		r.admits(next)
		time.Sleep(2 * ttl)
		if err := l.Check(); !errors.Is(err, lease.ErrLost) {
			t.Errorf("the first Check after the pause: %v", err)
		}
		r.refuses(l) // what was past its Check when it was stopped
		n.Clk.Resume()
		time.Sleep(time.Minute)
		lostWith(t, l, lease.CauseExpired)
		valid(t, next)
		r.admits(next)
	})
}
