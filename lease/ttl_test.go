package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A hold with a TTL of its own is renewed, kept through an outage and expires by that TTL; others of its manager by theirs.
func TestTTLOfOneHold(t *testing.T) {
	for name, c := range map[string]struct{ of, one time.Duration }{
		"longer than the manager's":  {15 * time.Second, time.Minute},
		"shorter than the manager's": {time.Minute, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{TTL: c.of})
				plain := n.Take("plain")
				l, err := n.Acquire(t.Context(), "job", lease.WithTTL(c.one))
				if err != nil {
					t.Fatal(err)
				}
				w.Acquired(l)
				if rec := w.Get("job"); rec.TTL != c.one || w.Get("plain").TTL != c.of || n.TTL() != c.of {
					t.Errorf("records with TTLs of %v and %v; want %v and %v", rec.TTL, w.Get("plain").TTL, c.one, c.of)
				}
				if got, want := l.Left(), c.one*8/10; got != want {
					t.Errorf("valid for %v, want %v", got, want)
				}
				if got, want := plain.Left(), c.of*8/10; got != want {
					t.Errorf("the other one is valid for %v, want %v", got, want)
				}

				var puts atomic.Int64
				n.Plan(func(op faulty.Op) faulty.Fault {
					if leasetest.Claims("job")(op) {
						puts.Add(1)
					}
					return faulty.Fault{}
				})
				time.Sleep(30 * c.one)
				if got := puts.Load(); got < 85 || got > 130 { // every third of the TTL, or up to a fifth earlier
					t.Errorf("%d renewals in 30 TTLs", got)
				}
				valid(t, l)

				wait := w.Node(lease.Options{TTL: c.of}).Acquiring(t.Context(), "job")
				renewed := w.Get("job")
				for w.Get("job").Version == renewed.Version {
					time.Sleep(time.Millisecond)
				}
				start := time.Now() // of the last renewal
				n.Outage.StartRefusing(errRefused)
				time.Sleep(c.one*8/10 - 2*time.Millisecond)
				valid(t, l)
				time.Sleep(2 * time.Millisecond)
				lostWith(t, l, lease.CauseOutage)
				next := wait.Wait(t, start, c.one+time.Millisecond)
				if took := time.Since(start); took < c.one-time.Millisecond || next.Token() <= l.Token() {
					t.Errorf("taken after %v under token %d, want it after %v", took, next.Token(), c.one)
				}
			})
		})
	}
}

// TryAcquire and Run take it, too, and 0 is the manager's.
func TestTTLOfEachCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l, err := n.TryAcquire(t.Context(), "job", lease.WithTTL(time.Minute))
		if err != nil || w.Get("job").TTL != time.Minute {
			t.Errorf("TryAcquire: %v, %v, %+v", l, err, w.Get("job"))
		}
		release(t, l)
		err = n.Run(t.Context(), "job", func(context.Context, *lease.Lease) error {
			if got := w.Get("job").TTL; got != 2*time.Minute {
				t.Errorf("Run: a TTL of %v", got)
			}
			return nil
		}, lease.WithTTL(2*time.Minute))
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		if l, err = n.Acquire(t.Context(), "job", lease.WithTTL(0)); err != nil || w.Get("job").TTL != ttl {
			t.Errorf("a TTL of 0: %v, %v, %+v", l, err, w.Get("job"))
		}
	})
}

// What the manager's options say of a renewal in seconds stands; a TTL that it doesn't fit is refused, without a request.
func TestTTLOfOneHoldIsChecked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{Renew: 5 * time.Second})
		s := n.Open()
		before := n.Net.Count(faulty.Get) + n.Net.Count(faulty.Put)
		for _, c := range []struct {
			ttl  time.Duration
			says string
		}{
			{-time.Second, "TTL -1s: want 10ms to"},
			{time.Millisecond, "TTL 1ms: want 10ms to"},
			{store.MaxTTL + 1, "TTL"},
			{6 * time.Second, "renewal every 5s with attempts of 300ms is too late"},
		} {
			opt := lease.WithTTL(c.ttl)
			for call, acquire := range map[string]func(context.Context, string, ...lease.AcquireOption) (*lease.Lease, error){
				"Acquire": n.Acquire, "TryAcquire": n.TryAcquire,
			} {
				if l, err := acquire(t.Context(), "job", opt); l != nil || err == nil || !strings.Contains(err.Error(), "acquire job: "+c.says) {
					t.Errorf("%s with a TTL of %v: %v, %v; want an error that says %q", call, c.ttl, l, err, c.says)
				}
			}
		}
		for call, acquire := range map[string]func(context.Context, string, ...lease.AcquireOption) (*lease.Lease, error){
			"Acquire": s.Acquire, "TryAcquire": s.TryAcquire,
			"Run": func(ctx context.Context, name string, opts ...lease.AcquireOption) (*lease.Lease, error) {
				return nil, s.Run(ctx, name, func(context.Context, *lease.Lease) error { t.Error("called"); return nil }, opts...)
			},
		} {
			if l, err := acquire(t.Context(), "job", lease.WithTTL(ttl)); l != nil || err == nil || !strings.Contains(err.Error(), "leave WithTTL out") {
				t.Errorf("%s under a session: %v, %v", call, l, err)
			}
		}
		if n.Net.Count(faulty.Get)+n.Net.Count(faulty.Put) != before {
			t.Error("the store was asked about a TTL that is refused")
		}
	})
}

// A claim with a TTL of its own that is given up is settled by that TTL, not by the manager's.
func TestTTLOfAClaimThatIsGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.Node(lease.Options{}), w.Node(lease.Options{})
		n.Plan(leasetest.Once(faulty.Fault{LoseReply: true, Silent: true}, leasetest.Claims("job")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		if l, err := n.Acquire(ctx, "job", lease.WithTTL(time.Second)); err == nil {
			t.Fatalf("acquired %v", l)
		}
		n.Outage.Start()
		other.Acquiring(t.Context(), "job").Wait(t, start, time.Second+time.Millisecond)
	})
}

func TestSessionLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		l := n.Under(s, "job")
		if s.Left() != validity || l.Left() != validity {
			t.Errorf("%v left of the session, %v of its lease, want %v", s.Left(), l.Left(), validity)
		}
		time.Sleep(time.Second)
		if s.Left() != validity-time.Second || l.Left() != s.Left() {
			t.Errorf("%v left of the session, %v of its lease after a second", s.Left(), l.Left())
		}
		time.Sleep(time.Hour)
		n.Outage.StartRefusing(errRefused)
		left := s.Left()
		if left <= validity-ttl/3-time.Second || left > validity {
			t.Errorf("%v left of a session that is renewed", left)
		}
		time.Sleep(left - 1)
		if s.Left() != 1 || s.Check() != nil {
			t.Errorf("%v left, %v", s.Left(), s.Check())
		}
		time.Sleep(time.Nanosecond)
		if s.Left() != 0 || !errors.Is(s.Check(), lease.ErrLost) || l.Left() != 0 {
			t.Errorf("%v left after the end, %v left of its lease", s.Left(), l.Left())
		}
		n.Outage.End()

		next := n.Open()
		if err := next.Close(t.Context()); err != nil || next.Left() != 0 {
			t.Errorf("%v left of a session that was closed: %v", next.Left(), err)
		}
	})
}

func TestSessionRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		err := s.Run(t.Context(), "job", func(ctx context.Context, l *lease.Lease) error {
			time.Sleep(time.Minute)
			valid(t, l)
			if rec := w.Get("job"); ctx.Err() != nil || rec.Owner != n.Holder() || rec.Session != s.Key() {
				t.Errorf("context %v, record %+v", ctx.Err(), rec)
			}
			return errJob
		})
		if err == nil || err.Error() != errJob.Error() || w.Get("job").Owner != "" {
			t.Errorf("Run: %v, the record %+v", err, w.Get("job"))
		}
		if err := s.Check(); err != nil {
			t.Errorf("the session after Run: %v", err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w.Node(lease.Options{}).Take("taken")
		err = s.Run(ctx, "taken", func(context.Context, *lease.Lease) error { t.Error("called without the lease"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lease.ErrHeld) {
			t.Errorf("Run of a name that is held: %v", err)
		}
	})
}

// The work of a session's Run ends with the session, and with its own lease, and Run says so.
func TestSessionRunLost(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(t *testing.T, w *world, n *node, s *lease.Session, l *lease.Lease)
		cause lease.Cause
	}{
		"the session": {func(_ *testing.T, _ *world, n *node, _ *lease.Session, _ *lease.Lease) {
			n.Outage.StartRefusing(errRefused)
		}, lease.CauseOutage},
		"its lease": {func(t *testing.T, w *world, _ *node, _ *lease.Session, l *lease.Lease) {
			if _, err := newManager(t, w.DB.Open()).Break(t.Context(), l.Name(), lease.EndTerm{Token: l.Token(), By: "ada"}); err != nil {
				t.Error(err)
			}
		}, lease.CauseBroken},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				err := s.Run(t.Context(), "job", func(ctx context.Context, l *lease.Lease) error {
					c.end(t, w, n, s, l)
					<-ctx.Done()
					n.Outage.End()
					return context.Cause(ctx)
				})
				var lost *lease.LostError
				if !errors.As(err, &lost) || lost.Cause != c.cause || lost.Name != "job" {
					t.Errorf("Run: %v, want a loss by %q", err, c.cause)
				}
			})
		})
	}
}

func ExampleWithTTL() {
	m, closeAll := exampleManager()
	defer closeAll()

	l, err := m.Acquire(context.Background(), "backup", lease.WithTTL(30*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("valid without a renewal for about", l.Left().Round(time.Second))
	_ = l.Release(context.Background())
	// Output: valid without a renewal for about 24s
}

func ExampleSession_Run() {
	m, closeAll := exampleManager()
	defer closeAll()
	ctx := context.Background()
	s, err := m.OpenSession(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = s.Run(ctx, "shard/7", func(ctx context.Context, l *lease.Lease) error {
		fmt.Println("working under", l.Name())
		return ctx.Err() // ctx is done when the lease or its session is lost
	})
	fmt.Println("error:", err, "session open:", s.Check() == nil)
	// Output:
	// working under shard/7
	// error: <nil> session open: true
}

// A session tells for how long its leases can be relied on if the store is down from now on.
func ExampleSession_Left() {
	m, closeAll := exampleManager()
	defer closeAll()
	ctx := context.Background()
	s, err := m.OpenSession(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("time for a step of 5 s:", s.Left() > 5*time.Second)
	_ = s.Close(ctx)
	fmt.Println("after Close:", s.Left())
	// Output:
	// time for a step of 5 s: true
	// after Close: 0s
}
