package lease_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestKeeperRenewsEveryThird(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		before := n.Net.Count(faulty.Put)
		time.Sleep(time.Hour)
		// Every 4 to 5 s.
		if got := n.Net.Count(faulty.Put) - before; got < 720 || got > 900 {
			t.Errorf("%d renewals in an hour", got)
		}
		if n.Net.Count(faulty.Get) > 2 {
			t.Errorf("%d reads, want those that found the name free and without shares", n.Net.Count(faulty.Get))
		}
		if left := l.Left(); left < validity-5*time.Second {
			t.Errorf("%v left", left)
		}
	})
}

// drain returns the states of the events that are there.
func drain(c <-chan lease.Event) (states []lease.State, closed bool) {
	for {
		select {
		case e, ok := <-c:
			if !ok {
				return states, true
			}
			states = append(states, e.State)
		default:
			return states, false
		}
	}
}

func equalStates(got []lease.State, want ...lease.State) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

// An outage of 5 s that begins at whatever moment costs no lease, and is told as jeopardy.
func TestKeeperOutlivesOutage(t *testing.T) {
	for at := time.Duration(0); at < 6*time.Second; at += 250 * time.Millisecond {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.Node(lease.Options{})
			l := n.Take("job")
			events := l.Events()
			time.Sleep(at)
			n.Outage.Start()
			time.Sleep(5 * time.Second)
			n.Outage.End()
			time.Sleep(10 * time.Second)
			valid(t, l)
			states, closed := drain(events)
			if closed || !equalStates(states, lease.StateHeld, lease.StateJeopardy, lease.StateHeld) && !equalStates(states, lease.StateHeld) {
				t.Errorf("outage at %v: events %v", at, states)
			}
			release(t, l)
		})
	}
}

func TestKeeperJeopardyAndRecovery(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		events := l.Events()
		if e := <-events; e.State != lease.StateHeld || e.Left != validity || e.Token != l.Token() || e.Name != "job" || e.Err != nil {
			t.Errorf("the first event: %+v", e)
		}
		n.Outage.StartRefusing(errRefused)
		e := <-events
		if e.State != lease.StateJeopardy || !errors.Is(e.Err, errRefused) || e.Left > validity-4*time.Second || e.Left < validity-5*time.Second {
			t.Errorf("in jeopardy: %+v", e)
		}
		valid(t, l)
		time.Sleep(time.Second)
		n.Outage.End()
		start := time.Now()
		// Retries come fast: within 1.5 times the longest pause, TTL/20.
		if e = <-events; e.State != lease.StateHeld || e.Err != nil || time.Since(start) > 1125*time.Millisecond {
			t.Errorf("after the outage: %+v after %v", e, time.Since(start))
		}
		if left := l.Left(); left < validity-1125*time.Millisecond-time.Second { // counted from its first attempt
			t.Errorf("%v left after the renewal", left)
		}
		release(t, l)
		if e, ok := <-events; !ok || e.State != lease.StateReleased || e.Err != nil {
			t.Errorf("the last event: %+v", e)
		}
		if _, ok := <-events; ok {
			t.Error("an event after the last one")
		}
	})
}

// The lease ends at its deadline, not before and not later; the context first.
func TestKeeperOutageToLoss(t *testing.T) {
	for name, start := range map[string]func(*faulty.Outage){
		"silent":   (*faulty.Outage).Start,
		"refusing": func(o *faulty.Outage) { o.StartRefusing(errRefused) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				events := l.Events()
				time.Sleep(33 * time.Second)
				ctx := l.Context()
				n.Net.SetPlan(func(op faulty.Op) faulty.Fault {
					if l.Left() == 0 && ctx.Err() == nil {
						t.Errorf("a %s of %s before the context was cancelled", op.Kind, op.Key)
					}
					return n.Outage.Plan(nil)(op)
				})
				start(n.Outage)
				deadline := l.ValidUntil()
				time.Sleep(deadline.Sub(n.Clk.Now()) - time.Nanosecond)
				valid(t, l)
				time.Sleep(2 * time.Nanosecond) // a timer of the fake clock may be a nanosecond late
				synctest.Wait()
				if ctx.Err() == nil {
					t.Error("the context outlives the deadline")
				}
				lostWith(t, l, lease.CauseOutage)
				states, closed := drain(events)
				if !closed || !equalStates(states, lease.StateHeld, lease.StateJeopardy, lease.StateLost) {
					t.Errorf("events %v, closed: %v", states, closed)
				}
				ops := n.Net.Count(faulty.Put) + n.Net.Count(faulty.Get)
				time.Sleep(time.Minute)
				if n.Net.Count(faulty.Put)+n.Net.Count(faulty.Get) != ops {
					t.Error("requests go on after the loss")
				}
				err := l.Release(t.Context())
				if name == "refusing" && !errors.Is(err, errRefused) || name == "silent" && !errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("Release: %v", err)
				}
				n.Outage.End()
				if next := n.Take("job"); next.Token() <= l.Token() {
					t.Errorf("token %d after %d", next.Token(), l.Token())
				}
			})
		})
	}
}

func TestKeeperTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		time.Sleep(time.Second)
		w.Wipe("job")
		next := w.Node(lease.Options{})
		w.Unsafe = true // the store was wiped: only the token can tell the two apart
		taker := next.Take("job")
		time.Sleep(5*time.Second + time.Millisecond)
		lostWith(t, l, lease.CauseTaken)
		release(t, l)
		valid(t, taker)
		if taker.Token() <= l.Token() || w.Get("job").Owner != next.Holder() {
			t.Errorf("token %d after %d, the record %+v", taker.Token(), l.Token(), w.Get("job"))
		}
	})
}

// A failure before a loss that it did not cause isn't blamed for it, and doesn't spoil the release.
func TestKeeperTakenInDoubt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		w.Wipe("job")
		n.Plan(leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.Kind(faulty.Put)))
		time.Sleep(7 * time.Second)
		lostWith(t, l, lease.CauseTaken)
		var lost *lease.LostError
		if errors.As(l.Check(), &lost); lost.Err != nil {
			t.Errorf("the loss is blamed on %v", lost.Err)
		}
		release(t, l)
	})
}

// The last event of a lease comes once, whatever ends it, and even to a reader who never reads the others.
func TestEventsOfSlowReader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var observed diary
		n := w.Node(lease.Options{OnEvent: observed.note})
		l := n.Take("job")
		events := l.Events()
		for range 20 {
			n.Outage.StartRefusing(errRefused)
			time.Sleep(6 * time.Second)
			n.Outage.End()
			time.Sleep(6 * time.Second)
		}
		release(t, l)
		states, closed := drain(events)
		if len(states) != lease.EventBuffer || !closed || states[len(states)-1] != lease.StateReleased {
			t.Errorf("%d events, closed: %v: %v", len(states), closed, states)
		}
		told := observed.of("job")
		if len(told) != 42 { // held, 20 times jeopardy and held, released
			t.Errorf("OnEvent was told of %d: %v", len(told), told)
		}
		for i, s := range told[:41] {
			if want := []lease.State{lease.StateHeld, lease.StateJeopardy}[i%2]; s != want {
				t.Errorf("event %d is %s, want %s", i, s, want)
			}
		}
	})
}

func TestEventsAfterTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		n.Outage.StartRefusing(errRefused)
		time.Sleep(ttl)
		e, ok := <-l.Events()
		if !ok || e.State != lease.StateLost || !errors.Is(e.Err, lease.ErrLost) || !errors.Is(e.Err, errRefused) {
			t.Errorf("the event of a lost lease: %+v", e)
		}
		if _, ok := <-l.Events(); ok {
			t.Error("an event after the last one")
		}
	})
}

// A context asked for after the end is done, too, with its cause.
func TestContextAfterTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.Node(lease.Options{}).Take("job")
		release(t, l)
		lostWith(t, l, lease.CauseReleased)
		if err := context.Cause(l.Context()); err.Error() != l.Check().Error() {
			t.Errorf("the context says %v, Check %v", err, l.Check())
		}
	})
}

// A store that fails in any way is tried again as long as that can help.
func TestKeeperEngineErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty.Fault
		on    faulty.Kind
	}{
		"refused":         {faulty.Fault{Err: errRefused}, faulty.Put},
		"closed":          {faulty.Fault{Err: store.ErrClosed}, faulty.Put},
		"corrupt":         {faulty.Fault{Err: driver.Corrupt("job", errRefused)}, faulty.Put},
		"invalid":         {faulty.Fault{Err: &store.InvalidError{Field: "TTL"}}, faulty.Put},
		"unknown, landed": {faulty.Fault{LoseReply: true}, faulty.Put},
		"unknown, silent": {faulty.Fault{LoseReply: true, Silent: true}, faulty.Put},
		"unknown, not":    {faulty.Fault{Drop: true}, faulty.Put},
		"unknown, late":   {faulty.Fault{ApplyLate: 3 * time.Second}, faulty.Put},
		"twice":           {faulty.Fault{ApplyTwice: true, ApplyLate: time.Second}, faulty.Put},
		"slow":            {faulty.Fault{Delay: 300 * time.Millisecond, ReplyDelay: 300 * time.Millisecond}, faulty.Put},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				for range 20 {
					n.Plan(leasetest.Once(c.fault, leasetest.Kind(c.on)))
					time.Sleep(9 * time.Second)
					valid(t, l)
				}
				release(t, l)
			})
		})
	}
}

// stubborn is a store whose writes, once it is stuck, are answered when it is freed and not before, whatever their contexts say.
type stubborn struct {
	store.Store
	stuck chan struct{} // nil before
}

func (s *stubborn) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if s.stuck != nil {
		<-s.stuck
	}
	return s.Store.Put(ctx, rec)
}

// The end of validity is noticed when it comes, though a store that doesn't heed contexts keeps a renewal under way.
func TestKeeperNoticesTheEndDuringARequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		st := &stubborn{Store: w.DB.Open()}
		l := w.Host(nil).Node(st, lease.Options{}).Take("job")
		st.stuck = make(chan struct{})
		time.AfterFunc(time.Hour, func() { close(st.stuck) })
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took < validity || took > validity+time.Microsecond {
			t.Errorf("noticed after %v, want %v", took, validity)
		}
		lostWith(t, l, lease.CauseOutage)
	})
}

// What kept a lease ends with it, though the program never releases what it has lost.
func TestALostLeaseKeepsNoGoroutine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		before := runtime.NumGoroutine()
		const leases = 10
		for i := range leases {
			n.Take(fmt.Sprint("job/", i))
		}
		n.Outage.StartRefusing(errRefused)
		time.Sleep(ttl)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more >= leases {
			t.Errorf("%d goroutines more than before", more)
		}
	})
}

// A notice is for sessions. On the record of a lease that keeps itself it says nothing.
func TestANoticeOnALeaseThatKeepsItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		w.Edit("job", func(r *store.Record) {
			r.Intervention, r.Note, r.Data, r.Nonce = store.InterventionNotice, "somebody", []byte(`{"broken":{"job":1}}`), r.Nonce+"+notice"
		})
		time.Sleep(time.Minute)
		valid(t, l)
		release(t, l)
	})
}
