package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// What is shown is who holds what, and who waits in which order.
func TestReadShowsHoldersAndWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q, r := w.process(nil), w.process(nil), w.process(nil)
		if s, err := roster.Load(t.Context(), p.Manager().Store(), "licences"); err != nil || s.Kind != "" {
			t.Errorf("%+v, %v", s, err)
		}
		a, err := semaphore(t, p.Session, 2, true).Acquire(t.Context(), 1)
		must(t, a, err)
		b, err := semaphore(t, p.Session, 2, true).Acquire(t.Context(), 1)
		must(t, b, err)
		for _, other := range []*process{q, r} {
			go func() { _, _ = semaphore(t, other.Session, 2, true).Acquire(t.Context(), 1) }()
			time.Sleep(time.Second)
		}
		s, err := roster.Load(t.Context(), p.Manager().Store(), "licences")
		if err != nil || s.Kind != roster.Semaphore || s.Limit != 2 || s.Token != b.Token() || len(s.Held) != 2 || len(s.Waiting) != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		if got := s.Held[1]; got.Owner != p.Manager().Holder() || got.Session != p.Key() || got.Slot != 1 || got.Token != b.Token() || got.Weight != 1 {
			t.Errorf("%+v", got)
		}
		if s.Waiting[0].Owner != q.Manager().Holder() || s.Waiting[1].Owner != r.Manager().Holder() {
			t.Errorf("%+v", s.Waiting)
		}
	})
}

// A hold is valid until what keeps it is, and not after its release.
func TestHoldsValidity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		share, err := semaphore(t, p.Session, 2, false).Acquire(t.Context(), 1)
		must(t, share, err)
		m, err := NewMutex(p.Session, "m", MutexOptions{})
		if err != nil {
			t.Fatal(err)
		}
		mutex, err := m.Lock(t.Context())
		must(t, mutex, err)
		for _, h := range []*Hold{share, mutex} {
			if h.ValidUntil() != p.ValidUntil() || h.ValidUntil() <= p.Clk.Now() {
				t.Errorf("valid until %v, the session until %v", h.ValidUntil(), p.ValidUntil())
			}
			time.Sleep(time.Second)
			if want := h.ValidUntil().Sub(p.Clk.Now()); h.Left() != want || h.Left() != p.Left() || want <= 0 {
				t.Errorf("%v left of the hold, want %v; %v left of the session", h.Left(), want, p.Left())
			}
			if err := h.Release(t.Context()); err != nil || h.ValidUntil() != clock.Ended || h.Left() != 0 || p.Left() <= 0 {
				t.Errorf("after the release: %v, %v left, %v", h.ValidUntil(), h.Left(), err)
			}
		}
	})
}

func TestLeftAllocatesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h, err := semaphore(t, w.process(nil).Session, 2, false).Acquire(t.Context(), 1)
		must(t, h, err)
		if n := testing.AllocsPerRun(100, func() { h.Left() }); n != 0 {
			t.Errorf("Left allocates %v times", n)
		}
	})
}

// An operator ends a share by ending its session. Its holder learns of that, and others have its place then.
func TestSessionBrokenByAnOperator(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1)
		must(t, h, err)
		session, err := p.Manager().Store().Get(t.Context(), p.Key())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Manager().Break(t.Context(), p.Key(), lease.EndTerm{Token: session.Token + 1, By: "ada"}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("another term: %v", err)
		}
		if _, err := q.Manager().Break(t.Context(), p.Key(), lease.EndTerm{Token: session.Token, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		if err := h.Check(); !errors.Is(err, lease.ErrLost) {
			t.Errorf("its holder: %v", err)
		}
		got, err := semaphore(t, q.Session, 1, true).Acquire(t.Context(), 1)
		must(t, got, err)
	})
}

// A name that was held as a whole, by somebody whose clock is ahead, goes on from there when it is shared.
func TestTokensGoOnFromThoseOfTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		ahead := fence.Token(time.Now().Add(time.Hour).UnixMilli())
		if _, err := p.Manager().Store().Put(t.Context(), store.Record{Key: "licences", Token: ahead, Nonce: "x"}); err != nil {
			t.Fatal(err)
		}
		for _, fair := range []bool{false, true} {
			h, err := semaphore(t, p.Session, 1, fair).TryAcquire(t.Context(), 1)
			if must(t, h, err).Token() <= ahead {
				t.Errorf("token %d after the lease's %d", h.Token(), ahead)
			}
			ahead = h.Token()
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The same when the first acquisition comes to nothing: what withdraws it may be the first to write the roster.
func TestTokensGoOnWhenTheFirstAcquisitionIsWithdrawn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lost := true
		p := w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == "licences" && lost {
				lost = false
				return faulty.Fault{Drop: true}
			}
			return faulty.Fault{}
		})
		ahead := fence.Token(time.Now().Add(time.Hour).UnixMilli())
		w.Put(store.Record{Key: "licences", Token: ahead, Nonce: "x"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if h, err := semaphore(t, p.Session, 1, false).Acquire(ctx, 1); err == nil {
			t.Fatalf("acquired: %+v", h)
		}
		synctest.Wait()
		if rec, err := p.Manager().Store().Get(t.Context(), "licences"); err != nil || rec.Token < ahead {
			t.Errorf("the roster has token %d, %v; the lease had %d", rec.Token, err, ahead)
		}
	})
}
