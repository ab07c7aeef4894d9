package lease_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func breaks(w *world, key string, e lease.EndTerm) store.Record {
	w.T.Helper()
	e.By = "ops@desk"
	rec, err := newManager(w.T, w.Open()).Break(w.T.Context(), key, e)
	if err != nil {
		w.T.Fatalf("Break: %v", err)
	}
	return rec
}

func TestBreak(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		events := l.Events()
		wait := w.Node(lease.Options{}).Acquiring(t.Context(), "job")
		time.Sleep(time.Minute)
		rec := breaks(w, "job", lease.EndTerm{Token: l.Token(), Reason: "stuck"})
		if rec.Intervention != store.InterventionBroken || rec.Note != "ops@desk: stuck" || rec.Token != l.Token() || rec.Owner != n.Holder() {
			t.Errorf("Break returned %+v", rec)
		}
		time.Sleep(5 * time.Second)
		lostWith(t, l, lease.CauseBroken)
		if states, closed := drain(events); !closed || states[len(states)-1] != lease.StateLost {
			t.Errorf("events %v", states)
		}
		wait.Pending(t) // until the work has stopped
		start := time.Now()
		release(t, l)
		next := wait.Wait(t, start, 0)
		if past := w.Get("job").Past; past[0].Why != "broken by ops@desk: stuck" || next.Token() <= l.Token() {
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
				n := w.Node(lease.Options{})
				n.Clk.SetRate(0.9) // the slowest clock and the fastest that the margin is for
				var l *lease.Lease
				if kept {
					l = n.Under(n.Open(), "job")
				} else {
					l = n.Take("job")
				}
				time.Sleep(at)
				n.Outage.Start()
				breaks(w, "job", lease.EndTerm{Token: l.Token()})
				fast := w.Node(lease.Options{})
				fast.Clk.SetRate(1.1)
				start := time.Now()
				fast.Acquiring(t.Context(), "job").Wait(t, start, ttl+time.Millisecond)
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
		w.Unsafe = true
		n := w.Node(lease.Options{})
		l := n.Take("job")
		n.Outage.Start()
		rec := breaks(w, "job", lease.EndTerm{Token: l.Token(), Grace: time.Second})
		if rec.TTL != time.Second {
			t.Errorf("grace %v", rec.TTL)
		}
		start := time.Now()
		w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, time.Second+time.Millisecond)
		valid(t, l) // as documented: the old one may still be working
	})
}

// The session ends the broken lease only, and before its next renewal.
func TestBreakOfSessionLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		a, b, c := n.Under(s, "a"), n.Under(s, "b"), n.Under(s, "c")
		n.Plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == s.Key() && w.Get(s.Key()).Intervention == store.InterventionNotice && op.Record.Version == w.Get(s.Key()).Version && a.Check() == nil {
				t.Error("the notice is taken off before the lease has ended")
			}
			return faulty.Fault{}
		})
		wait := w.Node(lease.Options{}).Acquiring(t.Context(), "a")
		time.Sleep(time.Minute)
		start := time.Now()
		breaks(w, "a", lease.EndTerm{Token: a.Token()})
		breaks(w, "c", lease.EndTerm{Token: c.Token()}) // both before the session has met the first
		breaks(w, "c", lease.EndTerm{Token: c.Token()})
		time.Sleep(5 * time.Second)
		lostWith(t, a, lease.CauseBroken)
		lostWith(t, c, lease.CauseBroken)
		valid(t, b)
		wait.Wait(t, start, ttl+time.Millisecond)
		time.Sleep(time.Hour)
		valid(t, b)
		if rec := w.Get(s.Key()); rec.Intervention != "" || len(rec.Data) != 0 {
			t.Errorf("the session's record: %+v", rec)
		}
		release(t, c)
		again := n.Under(s, "c")
		valid(t, again)
		time.Sleep(time.Minute)
		valid(t, again)
	})
}

// A session that was broken ends, whichever of its leases is broken before it has met that.
func TestBreakOfSessionThenOfItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		a, b := n.Under(s, "a"), n.Under(s, "b")
		breaks(w, s.Key(), lease.EndTerm{Token: w.Get(s.Key()).Token})
		breaks(w, "a", lease.EndTerm{Token: a.Token()})
		if rec := w.Get(s.Key()); rec.Intervention != store.InterventionBroken {
			t.Errorf("the session's record: %+v", rec)
		}
		time.Sleep(5 * time.Second)
		for _, l := range []*lease.Lease{a, b} {
			lostWith(t, l, lease.CauseBroken)
		}
		if s.Check() == nil {
			t.Error("the session lives on")
		}
	})
}

// The notice may reach the session before the lease knows that its claim has landed.
func TestBreakOfSessionLeaseUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		time.Sleep(3900 * time.Millisecond) // just before the session's renewal
		n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: 3 * time.Second}, leasetest.Claims("a")))
		got := make(chan *lease.Lease)
		go func() {
			l, err := s.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		breaks(w, "a", lease.EndTerm{Token: w.Get("a").Token})
		if l := <-got; l != nil {
			lostWith(t, l, lease.CauseBroken)
		}
	})
}

func TestFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		for _, l := range []*lease.Lease{n.Take("own"), n.Under(s, "kept")} {
			time.Sleep(10 * time.Millisecond)
			rec, err := newManager(t, w.DB.Open()).Free(t.Context(), l.Name(), lease.EndTerm{Token: l.Token(), By: "script"})
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

func TestEndOfAnotherTerm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		old := w.Get("job")
		for name, evict := range map[string]func(key string, token fence.Token) (store.Record, error){
			"Break": func(key string, token fence.Token) (store.Record, error) {
				return newManager(t, w.DB.Open()).Break(t.Context(), key, lease.EndTerm{Token: token, By: "me"})
			},
			"Free": func(key string, token fence.Token) (store.Record, error) {
				return newManager(t, w.DB.Open()).Free(t.Context(), key, lease.EndTerm{Token: token, By: "me"})
			},
		} {
			for _, token := range []fence.Token{0, l.Token() - 1, l.Token() + 1} {
				var stale *fence.StaleError
				want := fence.StaleError{Name: "job", Got: token, Current: l.Token(), Holder: n.Holder()}
				rec, err := evict("job", token)
				if !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) || *stale != want || token != 0 && !strings.Contains(err.Error(), n.Holder()) {
					t.Errorf("%s with token %d: %v, want %+v", name, token, err, want)
				}
				if rec.Version != old.Version {
					t.Errorf("%s with token %d: the record is %+v, want that which is stored", name, token, rec)
				}
			}
			var stale *fence.StaleError
			if _, err := evict("nobody's", 1); !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "nobody's", Got: 1}) {
				t.Errorf("%s of a free name: %v", name, err)
			}
			for _, key := range []string{"", ".session/x"} {
				if _, err := evict(key, 1); !errors.Is(err, store.ErrInvalid) {
					t.Errorf("%s(%q): %v", name, key, err)
				}
			}
		}
		if got := w.Get("job"); got.Version != old.Version {
			t.Errorf("something was written: %+v", got)
		}
	})
}

// Break goes on when the holder renews in between, and can be called again when its outcome is unknown.
func TestBreakUnderFaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		slow := faulty.Wrap(w.Open(), leasetest.Once(faulty.Fault{Delay: 6 * time.Second}, leasetest.Kind(faulty.Put)))
		defer slow.Close()
		if _, err := newManager(t, slow).Break(t.Context(), "job", lease.EndTerm{Token: l.Token(), By: "me"}); err != nil {
			t.Errorf("Break across a renewal: %v", err)
		}
		slow.SetPlan(leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.Kind(faulty.Put)))
		if _, err := newManager(t, slow).Break(t.Context(), "job", lease.EndTerm{Token: l.Token(), By: "me"}); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("Break without an answer: %v", err)
		}
		if _, err := newManager(t, slow).Break(t.Context(), "job", lease.EndTerm{Token: l.Token(), By: "me"}); err != nil {
			t.Errorf("Break again: %v", err)
		}
		time.Sleep(5 * time.Second)
		lostWith(t, l, lease.CauseBroken)
		release(t, l)
	})
}

// The notice for the session that keeps a lease is told again when the session is renewed in between.
func TestBreakTellsASessionThatIsRenewedMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		job, beside := n.Under(s, "job"), n.Under(s, "beside")
		told := func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Key == s.Key() }
		slow := faulty.Wrap(w.Open(), leasetest.Once(faulty.Fault{Delay: ttl / 3}, told))
		defer slow.Close()
		if _, err := newManager(t, slow).Break(t.Context(), "job", lease.EndTerm{Token: job.Token(), By: "me"}); err != nil {
			t.Errorf("Break: %v", err)
		}
		time.Sleep(ttl / 3)
		lostWith(t, job, lease.CauseBroken)
		valid(t, beside)
	})
}
