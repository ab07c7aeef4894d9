package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestSessionKeepsManyWithOneWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		var leases []*lease.Lease
		for i := range 1000 {
			l, err := s.Acquire(t.Context(), fmt.Sprintf("shard/%d", i))
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		before := n.Net.Count(faulty.Put)
		time.Sleep(time.Hour)
		if got := n.Net.Count(faulty.Put) - before; got < 720 || got > 900 {
			t.Errorf("%d writes in an hour, want one every 4 to 5 s", got)
		}
		for _, l := range leases {
			if err := l.Check(); err != nil || l.ValidUntil() != leases[0].ValidUntil() {
				t.Fatalf("%s: %v, valid until %v", l, err, l.ValidUntil())
			}
		}
		valid(t, leases[999])

		before = n.Net.Count(faulty.Put)
		release(t, leases[0])
		if got := n.Net.Count(faulty.Put) - before; got != 1 || w.Get("shard/0").Owner != "" {
			t.Errorf("a release took %d writes and left %+v", got, w.Get("shard/0"))
		}
		valid(t, leases[1])

		before = n.Net.Count(faulty.Put)
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if got := n.Net.Count(faulty.Put) - before; got != 1 {
			t.Errorf("closing the session took %d writes", got)
		}
		for _, l := range leases {
			if l.Check() == nil {
				t.Fatalf("%s outlives its session", l)
			}
		}
		lostWith(t, leases[500], lease.CauseReleased)
		if l, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "shard/500"); err != nil || l.Token() <= leases[500].Token() {
			t.Errorf("the name after its session was closed: %v, %v", l, err)
		}
		if why := w.Get("shard/500").Past[0].Why; why != "session ended" {
			t.Errorf("the term ended by %q", why)
		}
	})
}

func TestSessionLossEndsAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		a, b := n.Under(s, "a"), n.Under(s, "b")
		own := n.Take("own")
		events := a.Events()
		n.Outage.StartRefusing(errRefused)
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
		n.Outage.End()
		if next := n.Under(n.Open(), "a"); next.Token() <= a.Token() {
			t.Errorf("token %d after %d", next.Token(), a.Token())
		}
	})
}

// A taker closes the dead session first; a renewal of it that arrives afterwards does nothing.
func TestSessionIsFencedBeforeItsLeasesAreTaken(t *testing.T) {
	for _, ageless := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Ageless = ageless
			n, taker := w.Node(lease.Options{}), w.Node(lease.Options{})
			s := n.Open()
			a, b := n.Under(s, "a"), n.Under(s, "b")
			wait := taker.Acquiring(t.Context(), "a")
			late := 4 * ttl
			n.Plan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Put {
					return faulty.Fault{ApplyLate: late, Silent: true}
				}
				return faulty.Fault{Drop: true}
			})
			start := time.Now()
			// The session was written at 0 at the latest. Who only polls sees its death a TTL after its last look, at worst.
			next := wait.Wait(t, start, 2*ttl+time.Millisecond)
			if d := time.Since(start); d < ttl {
				t.Errorf("taken after %v", d)
			}
			lostWith(t, a, lease.CauseOutage)
			lostWith(t, b, lease.CauseOutage)
			if next.Token() <= a.Token() {
				t.Errorf("token %d after %d", next.Token(), a.Token())
			}
			time.Sleep(5 * ttl)
			if rec := w.Get(s.Key()); rec.Owner != "" || rec.Past[0].Why != "expired" {
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
		n := w.Node(lease.Options{})
		s := n.Open()
		n.Under(s, "a")
		wait := w.Node(lease.Options{}).Acquiring(t.Context(), "a")
		time.Sleep(time.Minute)
		wait.Pending(t)
		start := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait.Wait(t, start, ttl/3)
	})
}

// Releasing one lease of a session is noticed at once.
func TestSessionLeaseHandOverLatency(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Under(n.Open(), "a")
		other := w.Node(lease.Options{})
		otherSession := other.Open()
		got := make(chan *lease.Lease)
		go func() {
			l, err := otherSession.Acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			other.World.Acquired(l)
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
		n := w.Node(lease.Options{})
		s := n.Open()
		n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: 2 * time.Second}, leasetest.Claims("a")))
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
		if _, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "a"); err != nil {
			t.Errorf("the name afterwards: %v", err)
		}
	})
}

// The session's validity is looked at when the claim has landed, however the keeper fares.
func TestSessionExpiresDuringClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: 4 * time.Second}, leasetest.Claims("a")))
		done := make(chan error)
		go func() {
			l, err := s.Acquire(context.Background(), "a")
			if err == nil {
				t.Errorf("held: %v", l.Check())
			}
			done <- err
		}()
		synctest.Wait()
		n.Clk.Jump(time.Hour) // suspended; the answer comes before anything else runs
		if err := <-done; !errors.Is(err, lease.ErrLost) {
			t.Errorf("Acquire: %v", err)
		}
	})
}

func TestSessionSlowToOpen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		start, lost := time.Now(), leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.Kind(faulty.Put))
		n.Plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get && time.Since(start) < validity {
				return faulty.Fault{Err: errRefused}
			}
			return lost(op)
		})
		s := n.Open() // the first one is known too late to be of use: another one is made
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		valid(t, n.Under(s, "a"))
	})
}

func TestSessionEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		events := s.Events()
		n.Outage.StartRefusing(errRefused)
		time.Sleep(6 * time.Second)
		n.Outage.End()
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
		n := w.Node(lease.Options{})
		for range store.MaxPast + 2 {
			release(t, n.Take("job"))
		}
		rec := w.Get("job")
		rec.Data = []byte("the primitive's own")
		if _, err := w.DB.Open().Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		s := n.Open()
		for name, leave := range map[string]func(l *lease.Lease) error{
			"released":         func(l *lease.Lease) error { return l.Release(t.Context()) },
			"handed over to x": func(l *lease.Lease) error { return l.HandOver(t.Context(), "x") },
		} {
			n.Plan(nil)
			l := n.Under(s, "job")
			n.Plan(leasetest.Once(faulty.Fault{Err: errRefused}, leasetest.Kind(faulty.Get))) // the read is tried again
			if err := leave(l); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rec = w.Get("job")
			if len(rec.Past) != store.MaxPast || rec.Past[0].Why != name || rec.Past[0].Token != l.Token() || string(rec.Data) != "the primitive's own" {
				t.Errorf("%s: %+v", name, rec)
			}
			time.Sleep(ttl)
		}
		gone := n.Under(s, "job")
		w.Wipe("job")
		release(t, gone)
		if rec := w.Get("job"); rec.Version != "" {
			t.Errorf("the release of a name that was deleted wrote %+v", rec)
		}
	})
}

// The notice of a break may come only after the name was taken again under the same session. Two leases of one name can't
// both be valid until then, nor the first for ever.
func TestSessionTakesANameAgainBeforeItIsToldOfTheBreak(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.Node(lease.Options{})
		s := a.Open()
		first := a.Under(s, "job")
		w.Unsafe = true // as the operator wants it
		e := lease.EndTerm{Token: first.Token(), By: "operator", Grace: 20 * time.Millisecond}
		if _, err := newManager(t, w.DB.Open()).Break(t.Context(), "job", e); err != nil {
			t.Fatal(err)
		}
		second := a.Under(s, "job")
		w.Unsafe = false
		lostWith(t, first, lease.CauseTaken)
		time.Sleep(time.Minute)
		valid(t, second)
	})
}
