package lease_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// A claim that took longer than the time from one renewal to the next is renewed at once.
func TestASlowClaimIsRenewedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		n.Plan(leasetest.Once(faulty.Fault{Delay: ttl / 2}, leasetest.Claims("job")))
		l := n.Take("job")
		time.Sleep(time.Millisecond)
		if left := l.Left(); left < validity-2*time.Millisecond {
			t.Errorf("%v left, want a renewal's %v", left, validity)
		}
		release(t, l)
	})
}

// A lease may be released, and its manager closed, while the first renewal is becoming due.
func TestReleaseAndCloseAsTheRenewalBegins(t *testing.T) {
	const ttl = time.Minute // so long that no stall of the machine ends what is done here
	for i := range 100 {
		clk := clocktest.New(0)
		m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{TTL: ttl, Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		clk.Jump(ttl / 3)                                      // the timer for the renewal fires now, on another goroutine
		time.Sleep(time.Duration(i%4) * 10 * time.Microsecond) // before it has begun, as it begins, and after that
		var both sync.WaitGroup
		both.Go(func() {
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
		})
		both.Go(func() {
			if err := m.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		both.Wait()
		if l.Check() == nil {
			t.Error("still held")
		}
	}
}

// late is a clock whose timers can't be stopped: they are always just about to fire.
type late struct{ clock.Clock }

func (c late) AfterFunc(d time.Duration, f func()) func() bool {
	c.Clock.AfterFunc(d, f)
	return func() bool { return false }
}

// A timer for the first renewal that fires while the lease is being released, or when that or its manager's Close is over,
// begins nothing. The race detector sees two at one hold.
func TestARenewalThatComesDueTooLate(t *testing.T) {
	for name, c := range map[string]struct {
		lost bool // what is written at the end
		end  func(t *testing.T, m *lease.Manager, l *lease.Lease)
	}{
		"released": {false, func(t *testing.T, _ *lease.Manager, l *lease.Lease) { release(t, l) }},
		"being released": {true, func(t *testing.T, _ *lease.Manager, l *lease.Lease) {
			time.Sleep(ttl / 5)
			if err := l.Release(t.Context()); !errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("Release: %v", err)
			}
		}},
		"closed": {false, func(_ *testing.T, m *lease.Manager, _ *lease.Lease) { _ = m.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := faulty.Wrap(memory.New(memory.Options{}), nil)
				m, err := lease.NewManager(net, lease.Options{TTL: ttl, Clock: late{clocktest.New(0)}})
				if err != nil {
					t.Fatal(err)
				}
				l, err := m.Acquire(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: c.lost, Silent: c.lost} })
				c.end(t, m, l)
				net.SetPlan(func(op faulty.Op) faulty.Fault {
					t.Errorf("%v of %s after the end", op.Kind, op.Key)
					return faulty.Fault{}
				})
				time.Sleep(2 * ttl)
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// readings is a clock that calls f during the next reading, once.
type readings struct {
	clock.Clock
	f atomic.Pointer[func()]
}

func (c *readings) Now() clock.Instant {
	if f := c.f.Swap(nil); f != nil {
		(*f)()
	}
	return c.Clock.Now()
}

// A lease that is renewed while Check looks at the clock is valid: nothing of it, or of its session, ends.
func TestCheckDuringARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &readings{Clock: clocktest.New(0)}
		m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{TTL: ttl, Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		own, err := m.Acquire(t.Context(), "own")
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.OpenSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.Acquire(t.Context(), "kept")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*lease.Lease{own, kept} {
			pause := func() { time.Sleep(ttl) }
			clk.f.Store(&pause)
			if err := l.Check(); err != nil || s.Check() != nil {
				t.Errorf("%s: %v, its session: %v", l, err, s.Check())
			}
			valid(t, l)
		}
	})
}

// A renewed lease that is released tells so once, as the last of its events.
func TestARenewedLeaseIsReleased(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		n := w.Node(lease.Options{OnEvent: d.note})
		l := n.Take("job")
		time.Sleep(ttl)
		release(t, l)
		if told := d.of("job"); !equalStates(told, lease.StateHeld, lease.StateReleased) {
			t.Errorf("events %v", told)
		}
	})
}

// Of leases that are released before their first renewal the manager keeps nothing.
func TestAReleasedLeaseIsForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		released := func() weak.Pointer[lease.Lease] {
			l, err := n.Acquire(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			release(t, l)
			return weak.Make(l)
		}()
		runtime.GC()
		if released.Value() != nil {
			t.Error("a lease that was released is still in memory")
		}
		runtime.KeepAlive(n)
	})
}
