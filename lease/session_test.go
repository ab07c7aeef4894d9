package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestSessionKeepsManyWithOneWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		var leases []*lease.Lease
		for i := range 1000 {
			l, err := s.Acquire(t.Context(), fmt.Sprintf("shard/%d", i))
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		before := n.net.Count(faulty.Put)
		time.Sleep(time.Hour)
		if got := n.net.Count(faulty.Put) - before; got < 720 || got > 900 {
			t.Errorf("%d writes in an hour, want one every 4 to 5 s", got)
		}
		for _, l := range leases {
			if err := l.Check(); err != nil || l.ValidUntil() != leases[0].ValidUntil() {
				t.Fatalf("%s: %v, valid until %v", l, err, l.ValidUntil())
			}
		}
		valid(t, leases[999])

		before = n.net.Count(faulty.Put)
		release(t, leases[0])
		if got := n.net.Count(faulty.Put) - before; got != 1 || w.get("shard/0").Owner != "" {
			t.Errorf("a release took %d writes and left %+v", got, w.get("shard/0"))
		}
		valid(t, leases[1])

		before = n.net.Count(faulty.Put)
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if got := n.net.Count(faulty.Put) - before; got != 1 {
			t.Errorf("closing the session took %d writes", got)
		}
		for _, l := range leases {
			if l.Check() == nil {
				t.Fatalf("%s outlives its session", l)
			}
		}
		lostWith(t, leases[500], lease.CauseReleased)
		if l, err := w.node(lease.Options{}).TryAcquire(t.Context(), "shard/500"); err != nil || l.Token() <= leases[500].Token() {
			t.Errorf("the name after its session was closed: %v, %v", l, err)
		}
		if why := w.get("shard/500").Past[0].Why; why != "session ended" {
			t.Errorf("the term ended by %q", why)
		}
	})
}

func TestSessionLossEndsAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		a, b := n.under(s, "a"), n.under(s, "b")
		own := n.acquire("own")
		events := a.Events()
		n.outage.StartRefusing(errRefused)
		time.Sleep(validity)
		lostWith(t, a, lease.CauseOutage)
		lostWith(t, b, lease.CauseOutage)
		lostWith(t, own, lease.CauseOutage)
		var lost *lease.LostError
		if errors.As(a.Check(), &lost); lost.Name != "a" || lost.Token != a.Token() || !errors.Is(lost, errRefused) {
			t.Errorf("the loss of a: %v", lost)
		}
		if !errors.Is(s.Check(), lease.ErrLost) || s.Context().Err() == nil {
			t.Errorf("the session: %v", s.Check())
		}
		if states, closed := drain(events); !closed || !equalStates(states, lease.StateHeld, lease.StateLost) {
			t.Errorf("events of a: %v", states)
		}
		if _, err := s.Acquire(t.Context(), "c"); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Acquire under a session that is lost: %v", err)
		}
		n.outage.End()
		if next := n.under(n.open(), "a"); next.Token() <= a.Token() {
			t.Errorf("token %d after %d", next.Token(), a.Token())
		}
	})
}

// A taker closes the dead session first; a renewal of it that arrives afterwards does nothing.
func TestSessionIsFencedBeforeItsLeasesAreTaken(t *testing.T) {
	for _, ageless := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.ageless = ageless
			n, taker := w.node(lease.Options{}), w.node(lease.Options{})
			s := n.open()
			a, b := n.under(s, "a"), n.under(s, "b")
			wait := taker.acquiring(t.Context(), "a")
			late := 4 * ttl
			n.plan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Put {
					return faulty.Fault{ApplyLate: late, Silent: true}
				}
				return faulty.Fault{Drop: true}
			})
			start := time.Now()
			// The session was written at 0 at the latest. Who only polls sees its death a TTL after its last look, at worst.
			next := wait.wait(t, start, 2*ttl+time.Millisecond)
			if d := time.Since(start); d < ttl {
				t.Errorf("taken after %v", d)
			}
			lostWith(t, a, lease.CauseOutage)
			lostWith(t, b, lease.CauseOutage)
			if next.Token() <= a.Token() {
				t.Errorf("token %d after %d", next.Token(), a.Token())
			}
			time.Sleep(5 * ttl)
			if rec := w.get(s.Key()); rec.Owner != "" || rec.Past[0].Why != "expired" {
				t.Errorf("the session's record after the late renewal: %+v", rec)
			}
			if _, err := taker.TryAcquire(t.Context(), "b"); err != nil {
				t.Errorf("the other lease of a closed session: %v", err)
			}
		})
	}
}

// Who waits for a name that a session keeps watches the name, and looks at the session every third of the TTL.
func TestSessionCloseIsNoticedByWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		n.under(s, "a")
		wait := w.node(lease.Options{}).acquiring(t.Context(), "a")
		time.Sleep(time.Minute)
		wait.pending(t)
		start := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait.wait(t, start, ttl/3)
	})
}

// Releasing one lease of a session is noticed at once.
func TestSessionLeaseHandOverLatency(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		l := n.under(n.open(), "a")
		other := w.node(lease.Options{})
		otherSession := other.open()
		got := make(chan *lease.Lease)
		go func() {
			l, err := otherSession.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			other.w.acquired(other, l)
			got <- l
		}()
		time.Sleep(time.Minute)
		start := time.Now()
		release(t, l)
		valid(t, <-got)
		if d := time.Since(start); d != 0 {
			t.Errorf("acquired after %v", d)
		}
	})
}

// A session that ends while a claim is under way takes the claim with it.
func TestSessionEndsDuringClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		n.plan(once(faulty.Fault{ReplyDelay: 2 * time.Second}, claims("a")))
		done := make(chan error)
		go func() {
			_, err := s.Acquire(context.Background(), "a")
			done <- err
		}()
		time.Sleep(time.Second)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		var lost *lease.LostError
		if err := <-done; !errors.As(err, &lost) || lost.Cause != lease.CauseReleased {
			t.Errorf("Acquire: %v", err)
		}
		if _, err := w.node(lease.Options{}).TryAcquire(t.Context(), "a"); err != nil {
			t.Errorf("the name afterwards: %v", err)
		}
	})
}

// The session's validity is looked at when the claim has landed, however the keeper fares.
func TestSessionExpiresDuringClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		n.plan(once(faulty.Fault{ReplyDelay: 4 * time.Second}, claims("a")))
		done := make(chan error)
		go func() {
			l, err := s.Acquire(context.Background(), "a")
			if err == nil {
				t.Errorf("held: %v", l.Check())
			}
			done <- err
		}()
		synctest.Wait()
		n.clk.Jump(time.Hour) // suspended; the answer comes before anything else runs
		if err := <-done; !errors.Is(err, lease.ErrLost) {
			t.Errorf("Acquire: %v", err)
		}
	})
}

func TestSessionSlowToOpen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		start, lost := time.Now(), once(faulty.Fault{LoseReply: true}, kind(faulty.Put))
		n.plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get && time.Since(start) < validity {
				return faulty.Fault{Err: errRefused}
			}
			return lost(op)
		})
		s := n.open() // the first one is known too late to be of use: another one is made
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		valid(t, n.under(s, "a"))
	})
}

func TestSessionEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		s := n.open()
		events := s.Events()
		n.outage.StartRefusing(errRefused)
		time.Sleep(6 * time.Second)
		n.outage.End()
		time.Sleep(6 * time.Second)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if states, closed := drain(events); !closed || !equalStates(states, lease.StateHeld, lease.StateJeopardy, lease.StateHeld, lease.StateReleased) {
			t.Errorf("events %v", states)
		}
	})
}

// A lease of a session doesn't keep a long history in memory; its release and its hand-over keep it in the record.
func TestSessionLeaseKeepsHistoryAndData(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		for range store.MaxPast + 2 {
			release(t, n.acquire("job"))
		}
		rec := w.get("job")
		rec.Data = []byte("the primitive's own")
		if _, err := w.db.Open().Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		s := n.open()
		for name, leave := range map[string]func(l *lease.Lease) error{
			"released":         func(l *lease.Lease) error { return l.Release(t.Context()) },
			"handed over to x": func(l *lease.Lease) error { return l.HandOver(t.Context(), "x") },
		} {
			n.plan(nil)
			l := n.under(s, "job")
			n.plan(once(faulty.Fault{Err: errRefused}, kind(faulty.Get))) // the read is tried again
			if err := leave(l); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rec = w.get("job")
			if len(rec.Past) != store.MaxPast || rec.Past[0].Why != name || rec.Past[0].Token != l.Token() || string(rec.Data) != "the primitive's own" {
				t.Errorf("%s: %+v", name, rec)
			}
			time.Sleep(ttl)
		}
		gone := n.under(s, "job")
		w.wipe("job")
		release(t, gone)
		if rec := w.get("job"); rec.Version != "" {
			t.Errorf("the release of a name that was deleted wrote %+v", rec)
		}
	})
}

// The notice of a break may come only after the name was taken again under the same session. Two leases of one name can't
// both be valid until then, nor the first for ever.
func TestSessionTakesANameAgainBeforeItIsToldOfTheBreak(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node(lease.Options{})
		s := a.open()
		first := a.under(s, "job")
		w.unsafe = true // as the operator wants it
		e := lease.EndTerm{Token: first.Token(), By: "operator", Grace: 20 * time.Millisecond}
		if _, err := newManager(t, w.db.Open()).Break(t.Context(), "job", e); err != nil {
			t.Fatal(err)
		}
		second := a.under(s, "job")
		w.unsafe = false
		lostWith(t, first, lease.CauseTaken)
		time.Sleep(time.Minute)
		valid(t, second)
	})
}
