package lease_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func (w *world) breaks(key string, e lease.Eviction) store.Record {
	w.t.Helper()
	e.By = "ops@desk"
	rec, err := lease.Break(w.t.Context(), &ledger{Store: w.db.Open(), w: w}, key, e)
	if err != nil {
		w.t.Fatalf("Break: %v", err)
	}
	return rec
}

func TestBreak(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		l := n.acquire("job")
		events := l.Events()
		wait := w.node(lease.Options{}).acquiring(t.Context(), "job")
		time.Sleep(time.Minute)
		rec := w.breaks("job", lease.Eviction{Token: l.Token(), Note: "stuck"})
		if rec.Intervention != store.InterventionBroken || rec.Note != "ops@desk: stuck" || rec.Token != l.Token() || rec.Owner != n.Owner() {
			t.Errorf("Break returned %+v", rec)
		}
		time.Sleep(5 * time.Second)
		lostWith(t, l, lease.Broken)
		if states, closed := drain(events); !closed || states[len(states)-1] != lease.StateLost {
			t.Errorf("events %v", states)
		}
		wait.pending(t) // until the work has stopped
		start := time.Now()
		release(t, l)
		next := wait.wait(t, start, 0)
		if past := w.get("job").Past; past[0].Why != "broken by ops@desk: stuck" || next.Token() <= l.Token() {
			t.Errorf("history %+v, token %d after %d", past, next.Token(), l.Token())
		}
	})
}

// With the default grace nobody else starts before the holder's validity has ended, wherever in its interval the break
// meets it, and although it never hears of it. The world checks that.
func TestBreakOfSilentHolder(t *testing.T) {
	for at := time.Duration(0); at < 6*time.Second; at += time.Second {
		for _, kept := range []bool{false, true} {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(lease.Options{})
				n.clk.SetRate(0.9) // the slowest clock and the fastest that the margin is for
				var l *lease.Lease
				if kept {
					l = n.under(n.open(), "job")
				} else {
					l = n.acquire("job")
				}
				time.Sleep(at)
				n.outage.Start()
				w.breaks("job", lease.Eviction{Token: l.Token()})
				fast := w.node(lease.Options{})
				fast.clk.SetRate(1.1)
				start := time.Now()
				fast.acquiring(t.Context(), "job").wait(t, start, ttl+time.Millisecond)
				synctest.Wait()
				if l.Check() == nil {
					t.Error("the broken lease is valid")
				}
			})
		}
	}
}

func TestBreakWithLessGrace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.unsafe = true
		n := w.node(lease.Options{})
		l := n.acquire("job")
		n.outage.Start()
		rec := w.breaks("job", lease.Eviction{Token: l.Token(), Grace: time.Second})
		if rec.TTL != time.Second {
			t.Errorf("grace %v", rec.TTL)
		}
		start := time.Now()
		w.node(lease.Options{}).acquiring(t.Context(), "job").wait(t, start, time.Second+time.Millisecond)
		valid(t, l) // as documented: the old one may still be working
	})
}

// The session ends the broken lease only, and before its next renewal.
func TestBreakOfSessionLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		a, b, c := n.under(s, "a"), n.under(s, "b"), n.under(s, "c")
		n.plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == s.Key() && w.get(s.Key()).Intervention == store.InterventionNotice && op.Record.Version == w.get(s.Key()).Version && a.Check() == nil {
				t.Error("the notice is taken off before the lease has ended")
			}
			return faulty.Fault{}
		})
		wait := w.node(lease.Options{}).acquiring(t.Context(), "a")
		time.Sleep(time.Minute)
		start := time.Now()
		w.breaks("a", lease.Eviction{Token: a.Token()})
		w.breaks("c", lease.Eviction{Token: c.Token()}) // both before the session has met the first
		w.breaks("c", lease.Eviction{Token: c.Token()})
		time.Sleep(5 * time.Second)
		lostWith(t, a, lease.Broken)
		lostWith(t, c, lease.Broken)
		valid(t, b)
		wait.wait(t, start, ttl+time.Millisecond)
		time.Sleep(time.Hour)
		valid(t, b)
		if rec := w.get(s.Key()); rec.Intervention != "" || len(rec.Data) != 0 {
			t.Errorf("the session's record: %+v", rec)
		}
		release(t, c)
		again := n.under(s, "c")
		valid(t, again)
		time.Sleep(time.Minute)
		valid(t, again)
	})
}

// A session that was broken ends, whichever of its leases is broken before it has met that.
func TestBreakOfSessionThenOfItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		a, b := n.under(s, "a"), n.under(s, "b")
		w.breaks(s.Key(), lease.Eviction{Token: w.get(s.Key()).Token})
		w.breaks("a", lease.Eviction{Token: a.Token()})
		if rec := w.get(s.Key()); rec.Intervention != store.InterventionBroken {
			t.Errorf("the session's record: %+v", rec)
		}
		time.Sleep(5 * time.Second)
		for _, l := range []*lease.Lease{a, b} {
			lostWith(t, l, lease.Broken)
		}
		if s.Check() == nil {
			t.Error("the session lives on")
		}
	})
}

// The notice may reach the session before the lease knows that its claim has landed.
func TestBreakOfSessionLeaseUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		time.Sleep(3900 * time.Millisecond) // just before the session's renewal
		n.plan(once(faulty.Fault{ReplyDelay: 3 * time.Second}, claims("a")))
		got := make(chan *lease.Lease)
		go func() {
			l, err := s.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		w.breaks("a", lease.Eviction{Token: w.get("a").Token})
		if l := <-got; l != nil {
			lostWith(t, l, lease.Broken)
		}
	})
}

func TestFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		for _, l := range []*lease.Lease{n.acquire("own"), n.under(s, "kept")} {
			time.Sleep(10 * time.Millisecond)
			rec, err := lease.Free(t.Context(), w.db.Open(), l.Key(), lease.Eviction{Token: l.Token(), By: "script"})
			if err != nil || rec.Owner != "" || rec.Token != l.Token() || rec.Past[0].Why != "released by script" {
				t.Errorf("Free: %+v, %v", rec, err)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if err := l.Check(); !errors.Is(err, lease.ErrLost) {
				t.Errorf("the freed lease: %v", err)
			}
			release(t, l)
		}
		if err := s.Check(); err != nil {
			t.Errorf("the session: %v", err)
		}
	})
}

func TestEvictionOfAnotherTerm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		l := n.acquire("job")
		old := w.get("job")
		for name, evict := range map[string]func(key string, token fence.Token) (store.Record, error){
			"Break": func(key string, token fence.Token) (store.Record, error) {
				return lease.Break(t.Context(), w.db.Open(), key, lease.Eviction{Token: token, By: "me"})
			},
			"Free": func(key string, token fence.Token) (store.Record, error) {
				return lease.Free(t.Context(), w.db.Open(), key, lease.Eviction{Token: token, By: "me"})
			},
		} {
			for _, token := range []fence.Token{0, l.Token() - 1, l.Token() + 1} {
				var not *lease.NotCurrentError
				if _, err := evict("job", token); !errors.As(err, &not) || !errors.Is(err, lease.ErrNotCurrent) || not.Token != token || not.Record.Owner != n.Owner() || !strings.Contains(err.Error(), n.Owner()) {
					t.Errorf("%s with token %d: %v", name, token, err)
				}
			}
			if _, err := evict("nobody's", 1); !errors.Is(err, lease.ErrNotCurrent) || !strings.Contains(err.Error(), "free") {
				t.Errorf("%s of a free name: %v", name, err)
			}
			for _, key := range []string{"", ".session/x"} {
				if _, err := evict(key, 1); !errors.Is(err, store.ErrInvalid) {
					t.Errorf("%s(%q): %v", name, key, err)
				}
			}
		}
		if got := w.get("job"); got.Version != old.Version {
			t.Errorf("something was written: %+v", got)
		}
	})
}

// Break goes on when the holder renews in between, and can be called again when its outcome is unknown.
func TestBreakUnderFaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		l := n.acquire("job")
		slow := faulty.Wrap(&ledger{Store: w.db.Open(), w: w}, once(faulty.Fault{Delay: 6 * time.Second}, kind(faulty.Put)))
		defer slow.Close()
		if _, err := lease.Break(t.Context(), slow, "job", lease.Eviction{Token: l.Token(), By: "me"}); err != nil {
			t.Errorf("Break across a renewal: %v", err)
		}
		slow.SetPlan(once(faulty.Fault{LoseReply: true}, kind(faulty.Put)))
		if _, err := lease.Break(t.Context(), slow, "job", lease.Eviction{Token: l.Token(), By: "me"}); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("Break without an answer: %v", err)
		}
		if _, err := lease.Break(t.Context(), slow, "job", lease.Eviction{Token: l.Token(), By: "me"}); err != nil {
			t.Errorf("Break again: %v", err)
		}
		time.Sleep(5 * time.Second)
		lostWith(t, l, lease.Broken)
		release(t, l)
	})
}

// The notice for the session that keeps a lease is told again when the session is renewed in between.
func TestBreakTellsASessionThatIsRenewedMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		job, beside := n.under(s, "job"), n.under(s, "beside")
		told := func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Key == s.Key() }
		slow := faulty.Wrap(&ledger{Store: w.db.Open(), w: w}, once(faulty.Fault{Delay: ttl / 3}, told))
		defer slow.Close()
		if _, err := lease.Break(t.Context(), slow, "job", lease.Eviction{Token: job.Token(), By: "me"}); err != nil {
			t.Errorf("Break: %v", err)
		}
		time.Sleep(ttl / 3)
		lostWith(t, job, lease.Broken)
		valid(t, beside)
	})
}
