package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// What a session keeps doesn't expire while the session lives, so a release that could not be confirmed goes on.
func TestSessionLeaseIsLetGoForCertain(t *testing.T) {
	for name, plan := range map[string]faulty.Plan{
		"dropped": func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Key == "job"} },
		"refused": func(op faulty.Op) faulty.Fault {
			if op.Key == "job" {
				return faulty.Fault{Err: errRefused}
			}
			return faulty.Fault{}
		},
		"reply lost": func(op faulty.Op) faulty.Fault { return faulty.Fault{LoseReply: op.Key == "job"} },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				l := n.Under(s, "job")
				n.Plan(plan)
				start := time.Now()
				if err := l.Release(t.Context()); err == nil || time.Since(start) > ttl/3+time.Millisecond {
					t.Errorf("Release: %v after %v", err, time.Since(start))
				}
				time.Sleep(time.Hour)
				n.Plan(nil)
				start = time.Now()
				next := w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, ttl/3)
				rises(t, "released", l, next)
				if err := s.Check(); err != nil {
					t.Errorf("the session: %v", err)
				}
			})
		})
	}
}

// A claim that was given up in doubt can't land under a session that lives on, with nobody to let it go.
func TestSessionClaimGivenUpIsSettled(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"late":           {ApplyLate: 3 * time.Second, Silent: true},
		"very late":      {ApplyLate: time.Minute, Silent: true},
		"landed":         {LoseReply: true, Silent: true},
		"never arrives":  {Drop: true},
		"reply too late": {ReplyDelay: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				n.Plan(leasetest.Once(fault, leasetest.Claims("job")))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := s.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Acquire: %v", err)
				}
				time.Sleep(2 * time.Minute)
				if rec := w.Get("job"); rec.Owner != "" {
					t.Errorf("kept for ever: %+v", rec)
				}
				if err := s.Check(); err != nil {
					t.Errorf("the session: %v", err)
				}
				if _, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "job"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Closing the manager, or the session, ends the attempts to let go.
func TestSettlingEndsWithTheSession(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, n *node, s *lease.Session){
		"manager closed": func(t *testing.T, n *node, s *lease.Session) { _ = n.Close() },
		"session closed": func(t *testing.T, n *node, s *lease.Session) {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				l := n.Under(s, "job")
				n.Plan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Key == "job"} })
				if err := l.Release(t.Context()); !errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("Release: %v", err)
				}
				end(t, n, s)
				time.Sleep(2 * ttl)
				requests := n.Net.Count(faulty.Put) + n.Net.Count(faulty.Get)
				time.Sleep(time.Hour)
				if got := n.Net.Count(faulty.Put) + n.Net.Count(faulty.Get); got != requests {
					t.Errorf("%d requests go on", got-requests)
				}
				if next, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "job"); err != nil || next.Token() <= l.Token() {
					t.Errorf("the name afterwards: %v", err)
				}
			})
		})
	}
}

// What has come of a release in the background is remembered: the next try takes the name by one write.
func TestWhatWasSettledIsRemembered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Under(n.Open(), "job")
		n.Plan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Key == "job"} })
		if err := l.Release(t.Context()); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("Release: %v", err)
		}
		n.Plan(nil)
		time.Sleep(ttl)
		gets, puts := n.Net.Count(faulty.Get), n.Net.Count(faulty.Put)
		if _, err := n.TryAcquire(t.Context(), "job"); err != nil {
			t.Fatal(err)
		}
		if gets, puts = n.Net.Count(faulty.Get)-gets, n.Net.Count(faulty.Put)-puts; gets != 0 || puts != 1 {
			t.Errorf("%d reads and %d writes, want one write", gets, puts)
		}
	})
}
