package admiral_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func (w *world) operator() admiral.Operator {
	return admiral.Operator{Store: w.db.Open(), Config: config("any"), By: "ada@desk", Clock: clocktest.New(0)}
}

// row reads the lease past all networks.
func (w *world) row() store.Record {
	w.t.Helper()
	rec, err := w.operator().Record(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// TestHoldAndResume: an operator holds everyone passive for as long as it takes, and a hold that was taken off at once lets
// nobody begin before whoever was active has stopped.
func TestHoldAndResume(t *testing.T) {
	for _, c := range []struct {
		name    string
		settle  bool
		outage  bool // the active one doesn't notice
		least   time.Duration
		most    time.Duration
		holding time.Duration
	}{
		{name: "settled", settle: true, holding: time.Hour, most: time.Second},
		{name: "settled, the active one cut off", settle: true, outage: true, most: time.Second},
		{name: "taken off at once", least: ttl - time.Second, most: ttl + wait},
		{name: "taken off at once, the active one cut off", outage: true, least: ttl - time.Second, most: ttl + wait},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.ours("a", admiral.Options{})
				a.activeSoon(time.Second)
				b := w.ours("b", admiral.Options{})
				time.Sleep(time.Minute)
				if c.outage {
					a.outage.Start()
				}
				o := w.operator()
				held, err := o.Hold(t.Context(), "the database is being moved")
				if err != nil || held.Owner != admiral.SkipOwner {
					t.Fatal(held, err)
				}
				if c.settle {
					if err := o.Settle(t.Context(), held); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(c.holding)
				if c.holding > 0 {
					for _, i := range w.all {
						st := i.state.Status()
						if !st.ReadOnly || !st.Initialized || st.Owner != admiral.SkipOwner || !strings.Contains(st.Reason, "ada@desk: the database") {
							t.Errorf("%s: %+v", i.pod, st)
						}
					}
				}
				_, left, err := o.Resume(t.Context())
				if err != nil || (left == 0) != c.settle {
					t.Fatal(left, err)
				}
				start := time.Now()
				for !b.active() && (c.outage || !a.active()) {
					if time.Since(start) > c.most {
						t.Fatalf("nobody is active %v after the hold", c.most)
					}
					time.Sleep(step)
				}
				if took := time.Since(start); took < c.least && b.active() {
					t.Errorf("b is active %v after the hold: want at least %v", took, c.least)
				}
				w.neverTwo()
			})
		})
	}
}

// TestHoldDoesNotExpire: not on an engine that vouches for ages, and not for one that starts anew either.
func TestHoldDoesNotExpire(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		if _, err := w.operator().Hold(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		w.calm.Store(int64(time.Hour))
		time.Sleep(400 * 24 * time.Hour)
		b := w.ours("b", admiral.Options{})
		time.Sleep(time.Hour)
		if a.active() || b.active() || w.row().Owner != admiral.SkipOwner {
			t.Errorf("a active: %v, b active: %v, the row: %+v", a.active(), b.active(), w.row())
		}
		if _, err := w.operator().Hold(t.Context(), "again"); err != nil {
			t.Error(err)
		}
	})
}

// TestHoldByHand: a row as an operator of Admiral writes it, without any field of ours.
func TestHoldByHand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		rec := w.row()
		rec.Owner, rec.TTL, rec.Info, rec.Past = admiral.SkipOwner, ttl, nil, nil
		if _, err := w.db.Open().Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * ttl)
		if a.active() {
			t.Error("a is active")
		}
		if _, left, err := w.operator().Resume(t.Context()); err != nil || left != ttl {
			t.Error(left, err)
		}
		a.activeSoon(ttl + wait)
		if _, _, err := w.operator().Resume(t.Context()); !errors.Is(err, admiral.ErrNotHeld) {
			t.Errorf("Resume without a hold: %v", err)
		}
	})
}

// TestSwitchover: no TTL passes, and two are never active.
func TestSwitchover(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		b, c := w.ours("b", admiral.Options{}), w.ours("c", admiral.Options{})
		time.Sleep(time.Minute)
		before := w.row()
		there, err := w.operator().RollCall(t.Context(), 5*time.Second)
		if err != nil || len(there) != 3 {
			t.Fatalf("%+v, %v", there, err)
		}
		for _, i := range there {
			if (i.Status == "active") != (i.Pod == "a") || i.Region != "region-of-"+i.Pod {
				t.Errorf("%+v", i)
			}
		}
		start := time.Now()
		did, err := w.operator().Switchover(t.Context(), "c", 20*time.Second)
		if err != nil || did.To.Token <= before.Token || did.To.Info["pod"] != "c" {
			t.Fatalf("%+v, %v", did, err)
		}
		c.activeSoon(step)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("the switchover took %v", took)
		}
		if a.active() || b.active() {
			t.Error("a or b is active")
		}
		if again, err := w.operator().Switchover(t.Context(), "c", 20*time.Second); err != nil || again.To.Token != did.To.Token {
			t.Errorf("to the active one: %+v, %v", again, err)
		}
		time.Sleep(time.Hour)
		if !c.active() {
			t.Error("c is not active any more")
		}
		w.neverTwo()
	})
}

func TestSwitchoverToNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.operator().Switchover(t.Context(), "b", 10*time.Second); !errors.Is(err, admiral.ErrNobody) {
			t.Errorf("of a free lease: %v", err)
		}
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		b := w.ours("b", admiral.Options{WarmUp: time.Hour})
		time.Sleep(time.Minute)
		for _, pod := range []string{"b", "absent"} {
			_, err := w.operator().Switchover(t.Context(), pod, 10*time.Second)
			if err == nil || !strings.Contains(err.Error(), "a (active)") || !strings.Contains(err.Error(), "b (warming up)") {
				t.Errorf("to %s: %v", pod, err)
			}
		}
		if !a.active() || b.active() {
			t.Error("the lease has moved")
		}
	})
}

// TestStaleSwitchover: a call that its operator left behind ends no later term.
func TestStaleSwitchover(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		b := w.ours("b", admiral.Options{})
		time.Sleep(time.Minute)
		if _, err := w.operator().Switchover(t.Context(), "b", 10*time.Second); err != nil {
			t.Fatal(err)
		}
		b.activeSoon(step)
		st := w.db.Open()
		rec, err := st.Get(t.Context(), ".standby/"+leaseName)
		if err != nil {
			t.Fatal(err)
		}
		there, err := w.operator().RollCall(t.Context(), 3*time.Second)
		if err != nil || len(there) != 2 {
			t.Fatal(there, err)
		}
		for _, i := range there {
			if i.Pod == "a" {
				rec.Data = fmt.Appendf(nil, `{"id":"old","to":"a","token":%d,"answers":[{"pod":"a","owner":%q,"status":"passive"}]}`, w.row().Token-1, i.Owner)
			}
		}
		now, err := st.Get(t.Context(), rec.Key)
		if err != nil {
			t.Fatal(err)
		}
		rec.Version = now.Version
		if _, err := st.Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * ttl)
		if !b.active() || a.active() {
			t.Error("a call about an earlier term was obeyed")
		}
	})
}

// TestPitfall_P12_EqualPods: two pods with one podIdentifier, as of a deployment whose configuration was copied.
func TestPitfall_P12_EqualPods(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.ours("pod", admiral.Options{}), w.ours("pod", admiral.Options{})
		time.Sleep(10 * ttl)
		if a.active() == b.active() {
			t.Errorf("active: %v and %v", a.active(), b.active())
		}
		w.neverTwo()
	})
}

// TestWarmUp: the lease is held, and renewed, while its holder is not active yet; and it isn't snatched from a warm one.
func TestWarmUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const warm = 5 * time.Minute
		a := w.ours("a", admiral.Options{WarmUp: warm})
		b := w.ours("b", admiral.Options{WarmUp: warm})
		time.Sleep(warm - time.Second)
		first := w.row()
		if a.active() || b.active() || first.Owner == "" {
			t.Fatalf("in the warm-up: active %v %v, the row %+v", a.active(), b.active(), first)
		}
		st := a.state.Status()
		if first.Info["pod"] == "b" {
			st = b.state.Status()
		}
		if !st.ReadOnly || !st.Initialized || !strings.Contains(st.Reason, "warmed up") {
			t.Errorf("the holder: %+v", st)
		}
		time.Sleep(2 * time.Second)
		if a.active() == b.active() || w.row().Token != first.Token {
			t.Errorf("after it: active %v %v, token %d after %d", a.active(), b.active(), w.row().Token, first.Token)
		}

		active, passive := a, b
		if b.active() {
			active, passive = b, a
		}
		active.crash()
		time.Sleep(2 * time.Second)
		again := w.ours("again", admiral.Options{WarmUp: warm})
		passive.activeSoon(ttl + wait)
		time.Sleep(2 * warm)
		if again.active() || !passive.active() {
			t.Error("a restarted instance has taken over from a warm one")
		}
		w.neverTwo()
	})
}

// TestHandOverWaitsForWrites: no write of the former holder is under way when the next one begins.
func TestHandOverWaitsForWrites(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		b := w.ours("b", admiral.Options{})
		time.Sleep(time.Minute)
		term, err := a.state.Guard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, done := term.Bind(t.Context())
		w.wg.Go(func() {
			<-ctx.Done()
			time.Sleep(5 * time.Second) // slow to stop
			if b.active() {
				t.Error("b is active while a's write is under way")
			}
			done()
		})
		start := time.Now()
		if _, err := w.operator().Switchover(t.Context(), "b", time.Minute); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 10*time.Second {
			t.Errorf("the switchover took %v", took)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, admiral.ErrReadOnly) || !strings.Contains(cause.Error(), "handed over") {
			t.Errorf("the write was ended by %v", cause)
		}
	})
}

// TestWorkEndsFirst: the work is over before the lease is free, on every way out.
func TestWorkEndsFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		working := 0
		work := func(term admiral.Term) error {
			working++
			if working > 1 {
				t.Error("two work at a time")
			}
			<-term.Context().Done()
			time.Sleep(3 * time.Second)
			working--
			return nil
		}
		a := w.ours("a", admiral.Options{Work: work, Early: 5 * time.Second})
		a.activeSoon(time.Second)
		b := w.ours("b", admiral.Options{Work: work, Early: 5 * time.Second})
		time.Sleep(time.Minute)
		if _, err := w.operator().Switchover(t.Context(), "b", 20*time.Second); err != nil {
			t.Fatal(err)
		}
		b.activeSoon(step)
		time.Sleep(time.Minute)
		b.outage.Start()
		a.activeSoon(ttl + wait)
		time.Sleep(time.Minute)
		b.outage.End()
		time.Sleep(2 * wait) // for the request that hangs
		a.quit()
		b.activeSoon(6 * time.Second)
		w.neverTwo()
	})
}

// TestWorkThatFails ends the checker, with its error, and frees the lease.
func TestWorkThatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		errWork := errors.New("exit status 3")
		clk := clocktest.New(0)
		s := admiral.NewState(clk)
		c, err := admiral.New(func(context.Context) (store.Store, error) { return w.db.Open(), nil }, config("a"),
			admiral.Options{Clock: clk, Work: func(admiral.Term) error { time.Sleep(time.Minute); return errWork }})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context(), s); !errors.Is(err, errWork) {
			t.Errorf("Run: %v", err)
		}
		if rec := w.row(); rec.Owner != "" || !s.Status().ReadOnly {
			t.Errorf("%+v, %+v", rec, s.Status())
		}
	})
}

// TestEarly: the state turns read-only that long before the validity ends.
func TestEarly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const early = 6 * time.Second
		a := w.ours("a", admiral.Options{Early: early})
		a.activeSoon(time.Second)
		time.Sleep(time.Minute)
		a.net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Err: errRefused} })
		term, err := a.state.Guard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, done := term.Bind(t.Context())
		context.AfterFunc(ctx, done)
		left := time.Duration(0)
		for a.active() {
			left = a.state.Status().ExpiresIn
			if term.Left() != left {
				t.Errorf("%v left of the term, and %v by the state", term.Left(), left)
			}
			time.Sleep(step)
		}
		if left > 2*step {
			t.Errorf("read-only %v before its time", left)
		}
		err = context.Cause(ctx)
		if !errors.Is(err, admiral.ErrReadOnly) || !strings.HasSuffix(err.Error(), "read-only: the lease was not renewed in time") {
			t.Errorf("it is read-only for another reason: %v", err)
		}
	})
}

// TestRollCallsDontDisturbSwitchovers: while others look all the time, as `standby status --watch` does, each switchover is carried out,
// since a roll call waits for it.
func TestRollCallsDontDisturbSwitchovers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		w.ours("b", admiral.Options{})
		time.Sleep(time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		var looking sync.WaitGroup
		var seen atomic.Int64
		for range 3 {
			looking.Go(func() {
				for ctx.Err() == nil {
					if all, err := w.operator().RollCall(ctx, 3*time.Second); err == nil && len(all) == 2 {
						seen.Add(1)
					}
				}
			})
		}
		const rounds = 10
		for i := range rounds {
			for _, to := range []string{"b", "a"} {
				if _, err := w.operator().Switchover(t.Context(), to, time.Minute); err != nil {
					t.Errorf("round %d, to %s: %v", i, to, err)
				}
				time.Sleep(7 * time.Second)
			}
		}
		stop()
		looking.Wait()
		if seen.Load() == 0 {
			t.Error("nobody has seen both instances")
		}
		w.neverTwo()
	})
}
