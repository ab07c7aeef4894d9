package admiral_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store/faulty"
)

// scenario is what happens to three instances, whichever algorithm they run. They have been running for two minutes, and go
// on for five after it. a is one that is active.
type scenario struct {
	name    string
	stagger time.Duration // between their starts
	bad     bool          // a clock's rate is beyond every bound, so that two may believe that they are active
	do      func(w *world, start func(pod string) *instance)
}

var scenarios = []scenario{
	{name: "start at once", do: func(*world, func(string) *instance) {}},
	{name: "crash", stagger: 4 * time.Second, do: func(w *world, start func(string) *instance) {
		w.actives()[0].crash()
		time.Sleep(time.Second)
		start("replacement")
	}},
	{name: "stopped for 2 min", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		a := w.actives()[0]
		a.sigstop()
		time.Sleep(2 * time.Minute)
		a.sigcont()
	}},
	{name: "outage of the active one, hanging", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		a := w.actives()[0]
		a.outage.Start()
		time.Sleep(3 * time.Minute)
		a.outage.End()
	}},
	{name: "outage of the active one, refusing", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		a := w.actives()[0]
		a.outage.StartRefusing(errRefused)
		time.Sleep(3 * time.Minute)
		a.outage.End()
	}},
	{name: "the active one can read and can't write", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		w.actives()[0].net.SetPlan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put {
				return faulty.Fault{Err: errRefused}
			}
			return faulty.Fault{}
		})
		time.Sleep(5 * time.Minute)
		w.plans(faulty.Rates{})
	}},
	{name: "outage for all", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		for _, i := range w.instances() {
			i.outage.Start()
		}
		time.Sleep(3 * time.Minute)
		for _, i := range w.instances() {
			i.outage.End()
		}
	}},
	{name: "half of the replies lost", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		w.plans(faulty.Rates{LoseReply: 0.5, Silent: 0.3})
		time.Sleep(10 * time.Minute)
		w.plans(faulty.Rates{})
	}},
	{name: "late, lost and doubled requests", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		w.plans(faulty.Rates{Delay: 0.3, ReplyDelay: 0.3, Drop: 0.1, LoseReply: 0.1, ApplyLate: 0.2, ApplyTwice: 0.1, Silent: 0.5, MaxDelay: 20 * time.Second})
		time.Sleep(20 * time.Minute)
		w.plans(faulty.Rates{})
	}},
	{name: "wall clocks an hour apart", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		for n, i := range w.instances() {
			i.clk.StepWall([]time.Duration{time.Hour, -time.Hour, 0}[n%3])
		}
	}},
	{name: "wall clock steps back an hour on the active one", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		w.actives()[0].clk.StepWall(-time.Hour)
	}},
	{name: "clock rates 10 % off, both ways", stagger: 4 * time.Second, do: func(w *world, _ func(string) *instance) {
		for n, i := range w.instances() {
			i.clk.SetRate([]float64{1.1, 0.9, 1}[n%3])
		}
		time.Sleep(5 * time.Minute)
		w.actives()[0].outage.Start()
		time.Sleep(3 * time.Minute)
		for _, i := range w.instances() {
			i.outage.End()
		}
	}},
	{name: "frozen clock on the active one", stagger: 4 * time.Second, bad: true, do: func(w *world, _ func(string) *instance) {
		a := w.actives()[0]
		a.clk.SetRate(0)
		time.Sleep(5 * time.Minute)
		a.clk.SetRate(1)
	}},
}

// actives returns the instances that are active.
func (w *world) actives() []*instance {
	var list []*instance
	for _, i := range w.instances() {
		if i.active() {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		w.t.Fatal("nobody is active")
	}
	return list
}

// plans puts a network with those faults before every instance.
func (w *world) plans(r faulty.Rates) {
	for n, i := range w.instances() {
		i.net.SetPlan(i.outage.Plan(faulty.Random(uint64(n)+1, r)))
	}
}

// outcome is what came of a scenario.
type outcome struct {
	both                       time.Duration
	accepted, refused, formers int
	turns                      int // taken by the writers that were accepted
}

func (o outcome) String() string {
	return fmt.Sprintf("%8v %5d %5d %3d", o.both.Round(100*time.Millisecond), o.formers, o.refused, o.turns)
}

// play runs a scenario, and returns for how long two were active and what the resource saw.
func play(t *testing.T, s scenario, start func(w *world, pod string) *instance) (o outcome) {
	inWorld(t, func(t *testing.T, w *world) {
		for n := range 3 {
			i := start(w, fmt.Sprint("pod-", n+1))
			// Requests of those that start at once overlap.
			i.net.SetPlan(i.outage.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: time.Millisecond} }))
			time.Sleep(s.stagger)
		}
		time.Sleep(2 * time.Minute)
		s.do(w, func(pod string) *instance { return start(w, pod) })
		time.Sleep(5 * time.Minute)
		if len(w.actives()) != 1 && w.all[0].state != nil {
			t.Errorf("%s: %d are active in the end", s.name, len(w.actives()))
		}
		w.res.mu.Lock()
		defer w.res.mu.Unlock()
		o = outcome{time.Duration(w.both.Load()), w.res.accepted, w.res.refused, w.res.former, w.res.turns}
	})
	return o
}

// TestFaults plays every scenario with this package and with the published algorithm. Here two are never active at a time,
// but for a clock that stands still, against which only the token helps: no write of the former holder is accepted then.
func TestFaults(t *testing.T) {
	t.Logf("%-52s %-22s %s", "for so long two were active; writes accepted from", "here", "as published")
	t.Logf("%s", "the former holder; writes refused by their tokens; turns")
	for _, s := range scenarios {
		here := play(t, s, func(w *world, pod string) *instance { return w.ours(pod, admiral.Options{}) })
		there := play(t, s, func(w *world, pod string) *instance { return w.published(pod) })
		t.Logf("%-50s %v    %v", s.name, here, there)
		if here.both > 0 && !s.bad {
			t.Errorf("%s: two were active for %v", s.name, here.both)
		}
		if here.formers > 0 {
			t.Errorf("%s: %d writes of a former holder were accepted, in %d turns", s.name, here.formers, here.turns)
		}
		if here.accepted < 100 {
			t.Errorf("%s: only %d writes were accepted", s.name, here.accepted)
		}
		if s.bad && (here.both == 0 || here.refused == 0) {
			t.Errorf("%s: the fault did nothing: two active for %v, %d refused", s.name, here.both, here.refused)
		}
	}
}

// TestTakeover bounds the time that nobody is active.
func TestTakeover(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 0))
			a := w.ours("a", admiral.Options{})
			a.activeSoon(time.Second)
			b := w.ours("b", admiral.Options{})
			time.Sleep(ttl + time.Duration(r.Int64N(int64(wait))))
			a.crash()
			if took := b.activeSoon(ttl + wait); seed == 0 {
				t.Logf("taken over after %v, of %v at most", took, ttl+wait)
			}
			w.neverTwo()
		})
	}
}

// TestOutageIsReadOnlyWithTheReason also holds that an instance is active again as soon as the store answers.
func TestOutageIsReadOnlyWithTheReason(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		time.Sleep(time.Minute)
		a.outage.StartRefusing(errRefused)
		start := time.Now()
		for a.active() {
			time.Sleep(step)
		}
		if took := time.Since(start); took < ttl/4 || took > ttl {
			t.Errorf("read-only after %v of an outage", took)
		}
		time.Sleep(time.Second)
		_, err := a.state.Guard(context.Background())
		if st := a.state.Status(); !st.ReadOnly || st.Initialized || st.Err == nil || !contains(st.Reason, "refused") || !contains(err.Error(), "refused") {
			t.Errorf("%+v, %v", st, err)
		}
		a.outage.End()
		a.activeSoon(wait)
		if st := a.state.Status(); st.ReadOnly || !st.Initialized || st.Err != nil || st.Reason != "" {
			t.Errorf("%+v", st)
		}
	})
}
