package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// Of several who wait, the named one gets it, at once.
func TestHandOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other, heir := w.Node(lease.Options{}), w.Node(lease.Options{}), w.Node(lease.Options{})
		l := n.Take("job")
		events := l.Events()
		otherWait, heirWait := other.Acquiring(t.Context(), "job"), heir.Acquiring(t.Context(), "job")
		time.Sleep(time.Minute)
		var offered store.Record
		n.Plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put {
				offered = op.Record
				if l.Context().Err() == nil {
					t.Error("handed over before the context was cancelled")
				}
			}
			return faulty.Fault{}
		})
		start := time.Now()
		if err := l.HandOver(t.Context(), heir.Holder()); err != nil {
			t.Fatal(err)
		}
		next := heirWait.Wait(t, start, 0)
		lostWith(t, l, lease.CauseReleased)
		if next.Token() <= offered.Token || offered.Token <= l.Token() {
			t.Errorf("token %d after %d, offered %d", next.Token(), l.Token(), offered.Token)
		}
		if rec := w.Get("job"); rec.Intervention != "" || len(rec.Past) != 1 || rec.Past[0].Why != "handed over to "+heir.Holder() {
			t.Errorf("the record: %+v", rec)
		}
		if states, closed := drain(events); !closed || !equalStates(states, lease.StateHeld, lease.StateReleased) {
			t.Errorf("events %v", states)
		}
		time.Sleep(time.Minute)
		valid(t, next)
		otherWait.Pending(t)
		start = time.Now()
		release(t, next)
		otherWait.Wait(t, start, 0)
	})
}

// A successor that never comes leaves the name free for others after the TTL.
func TestHandOverToNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		time.Sleep(time.Second)
		wait := w.Node(lease.Options{}).Acquiring(t.Context(), "job")
		start := time.Now()
		if err := l.HandOver(t.Context(), "host/1/absent"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl - time.Nanosecond)
		wait.Pending(t)
		next := wait.Wait(t, start, ttl+time.Millisecond)
		if past := w.Get("job").Past; next.Token() <= l.Token() || !strings.HasPrefix(past[0].Why, "handed over") {
			t.Errorf("token %d after %d, history %+v", next.Token(), l.Token(), past)
		}
	})
}

func TestHandOverOfSessionLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, heir := w.Node(lease.Options{}), w.Node(lease.Options{})
		s, hs := n.Open(), heir.Open()
		l := n.Under(s, "job")
		if err := l.HandOver(t.Context(), heir.Holder()); err != nil {
			t.Fatal(err)
		}
		next := heir.Under(hs, "job")
		if rec := w.Get("job"); next.Token() <= l.Token() || rec.Session != hs.Key() {
			t.Errorf("token %d after %d, the record %+v", next.Token(), l.Token(), rec)
		}
		if err := s.Check(); err != nil {
			t.Errorf("the session: %v", err)
		}
	})
}

func TestHandOverMisuse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		for _, to := range []string{"", n.Holder(), "a\nb", strings.Repeat("x", store.MaxKey+1)} {
			if err := l.HandOver(t.Context(), to); err == nil {
				t.Errorf("HandOver(%q) succeeded", to)
			}
		}
		valid(t, l)
		n.Outage.StartRefusing(errRefused)
		time.Sleep(ttl)
		n.Outage.End()
		if err := l.HandOver(t.Context(), "host/1/heir"); !errors.Is(err, lease.ErrLost) {
			t.Errorf("HandOver of a lost lease: %v", err)
		}
	})
}

// A term that is over without the holder's knowing it is not handed over.
func TestHandOverOfTakenTerm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Unsafe = true
		n := w.Node(lease.Options{})
		l := n.Take("job")
		time.Sleep(time.Second)
		w.Wipe("job")
		taker := w.Node(lease.Options{}).Take("job")
		if err := l.HandOver(t.Context(), "host/1/heir"); !errors.Is(err, lease.ErrLost) {
			t.Errorf("HandOver: %v", err)
		}
		valid(t, taker)
		if w.Get("job").Token != taker.Token() {
			t.Errorf("the record: %+v", w.Get("job"))
		}
	})
}

// Whatever becomes of the reply, a hand-over that landed is one.
func TestHandOverInDoubt(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"reply lost":   {LoseReply: true},
		"reply silent": {LoseReply: true, Silent: true},
		"never sent":   {Drop: true},
		"late":         {ApplyLate: time.Second},
		"twice":        {ApplyTwice: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, busy := range []bool{false, true} {
				inWorld(t, func(t *testing.T, w *world) {
					n, heir := w.Node(lease.Options{}), w.Node(lease.Options{})
					l := n.Take("job")
					wait := heir.Acquiring(t.Context(), "job")
					n.Plan(leasetest.Once(fault, leasetest.Kind(faulty.Put)))
					if busy { // the heir takes it, and lets go of it, before the record is read
						go func() {
							<-wait.Done
							_ = wait.Lease.Release(context.Background())
						}()
					}
					start := time.Now()
					if err := l.HandOver(t.Context(), heir.Holder()); err != nil {
						t.Errorf("HandOver: %v", err)
					}
					next := wait.Wait(t, start, 6*time.Second)
					if next.Token() <= l.Token() {
						t.Errorf("token %d after %d", next.Token(), l.Token())
					}
				})
			}
		})
	}
}

func TestReleaseTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		puts := n.Net.Count(faulty.Put)
		n.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: time.Second} })
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { release(t, l) })
		}
		synctest.Wait()
		err := l.HandOver(t.Context(), "host/1/heir")
		var lost *lease.LostError
		if !errors.As(err, &lost) || lost.Cause != lease.CauseReleased {
			t.Errorf("HandOver beside a release: %v", err)
		}
		wg.Wait()
		if got := n.Net.Count(faulty.Put) - puts; got != 1 {
			t.Errorf("%d writes", got)
		}
	})
}

// Release tries for a bounded time, reports what it knows, and the name is free a TTL later at the latest.
func TestReleaseUnderFaults(t *testing.T) {
	for name, c := range map[string]struct {
		plan    faulty.Plan
		unknown bool
		want    error
	}{
		"reply lost":   {plan: leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.Kind(faulty.Put))},
		"refused once": {plan: leasetest.Once(faulty.Fault{Err: errRefused}, leasetest.Kind(faulty.Put))},
		"refused":      {plan: func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errRefused} }, want: errRefused},
		"reply lost, then refused": {plan: func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put {
				return faulty.Fault{LoseReply: true}
			}
			return faulty.Fault{Err: errRefused}
		}, want: errRefused, unknown: true},
		"silent": {plan: func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} }, unknown: true},
		"closed": {plan: func(faulty.Op) faulty.Fault { return faulty.Fault{Err: store.ErrClosed} }, want: store.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				time.Sleep(time.Second)
				n.Plan(c.plan)
				start := time.Now()
				err := l.Release(t.Context())
				took := time.Since(start)
				if (c.want == nil && !c.unknown) != (err == nil) || errors.Is(err, store.ErrUnknownOutcome) != c.unknown || (c.want != nil && !errors.Is(err, c.want)) {
					t.Errorf("Release: %v", err)
				}
				if took > 5*time.Second+time.Millisecond || (name == "closed" && took != 0) {
					t.Errorf("it took %v", took)
				}
				if again := l.Release(t.Context()); (again == nil) != (err == nil) {
					t.Errorf("second Release: %v, the first %v", again, err)
				}
				n.Plan(nil)
				w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, ttl+time.Millisecond)
			})
		})
	}
}
