package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// Close ends whatever is going on, waits for it, and can be called again.
func TestCloseInEveryState(t *testing.T) {
	hang := func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} }
	for name, prepare := range map[string]func(t *testing.T, w *world, n *node) (check func()){
		"new": func(*testing.T, *world, *node) func() { return func() {} },
		"waiting": func(t *testing.T, w *world, n *node) func() {
			w.Node(lease.Options{}).Take("job")
			return closedAcquisition(t, n.Acquiring(t.Context(), "job"))
		},
		"claiming": func(t *testing.T, w *world, n *node) func() {
			n.Plan(hang)
			return closedAcquisition(t, n.Acquiring(t.Context(), "job"))
		},
		"held": func(t *testing.T, w *world, n *node) func() {
			l := n.Take("job")
			return func() { lostWith(t, l, lease.CauseClosed) }
		},
		"renewing": func(t *testing.T, w *world, n *node) func() {
			l := n.Take("job")
			n.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: 700 * time.Millisecond} })
			time.Sleep(5100 * time.Millisecond)
			return func() { lostWith(t, l, lease.CauseClosed) }
		},
		"in jeopardy": func(t *testing.T, w *world, n *node) func() {
			l := n.Take("job")
			n.Outage.Start()
			time.Sleep(8 * time.Second)
			return func() { lostWith(t, l, lease.CauseClosed) }
		},
		"lost": func(t *testing.T, w *world, n *node) func() {
			l := n.Take("job")
			n.Outage.Start()
			time.Sleep(ttl)
			return func() { lostWith(t, l, lease.CauseOutage) }
		},
		"released": func(t *testing.T, w *world, n *node) func() {
			l := n.Take("job")
			release(t, l)
			return func() { lostWith(t, l, lease.CauseReleased) }
		},
		"withdrawing": func(t *testing.T, w *world, n *node) func() {
			n.Plan(hang)
			ctx, cancel := context.WithCancel(t.Context())
			a := n.Acquiring(ctx, "job")
			cancel()
			<-a.Done
			return func() {}
		},
		"session": func(t *testing.T, w *world, n *node) func() {
			s := n.Open()
			l := n.Under(s, "a")
			return func() {
				lostWith(t, l, lease.CauseClosed)
				if !errors.Is(s.Check(), lease.ErrLost) {
					t.Errorf("the session: %v", s.Check())
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				check := prepare(t, w, n)
				synctest.Wait()
				start := time.Now()
				if err := n.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("Close took %v", d)
				}
				check()
				if err := n.Close(); err != nil {
					t.Errorf("second Close: %v", err)
				}
				requests := n.Net.Count(faulty.Get) + n.Net.Count(faulty.Put)
				if l, err := n.Acquire(t.Context(), "other"); !errors.Is(err, lease.ErrClosed) || l != nil {
					t.Errorf("Acquire afterwards: %v, %v", l, err)
				}
				if l, err := n.TryAcquire(t.Context(), "other"); !errors.Is(err, lease.ErrClosed) || l != nil {
					t.Errorf("TryAcquire afterwards: %v, %v", l, err)
				}
				if s, err := n.OpenSession(t.Context()); !errors.Is(err, lease.ErrClosed) || s != nil {
					t.Errorf("OpenSession afterwards: %v, %v", s, err)
				}
				time.Sleep(time.Hour)
				if n.Net.Count(faulty.Get)+n.Net.Count(faulty.Put) != requests {
					t.Error("requests after Close")
				}
			})
		})
	}
}

func closedAcquisition(t *testing.T, a *leasetest.Acquisition) func() {
	return func() {
		<-a.Done
		if !errors.Is(a.Err, lease.ErrClosed) || a.Lease != nil {
			t.Errorf("Acquire: %v, %v", a.Lease, a.Err)
		}
	}
}

// Close doesn't free what is held, and a Release after it still does.
func TestReleaseAfterClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		_ = n.Close()
		if w.Get("job").Owner != n.Holder() {
			t.Error("Close has freed the name")
		}
		release(t, l)
		if w.Get("job").Owner != "" {
			t.Error("Release has not")
		}
	})
}

// A claim that lands while the manager is being closed is nobody's lease.
func TestCloseDuringClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: time.Second}, leasetest.Kind(faulty.Put)))
		a := n.Acquiring(t.Context(), "job")
		_ = n.Close()
		<-a.Done
		if a.Lease != nil || !errors.Is(a.Err, lease.ErrClosed) {
			t.Errorf("Acquire: %v, %v", a.Lease, a.Err)
		}
		w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, time.Now(), ttl+time.Millisecond)
	})
}

// A manager that is closed between a claim and the keeping of its lease returns no lease.
func TestCloseBeforeALeaseIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		clk := &closing{Clock: clocktest.New(0)}
		m, err := lease.NewManager(w.DB.Open(), lease.Options{Clock: clk, OnEvent: d.note})
		if err != nil {
			t.Fatal(err)
		}
		clk.close = func() { // beside the acquisition, whose lease has begun and has not ended
			_ = m.Close()
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.events) != 2 {
				t.Errorf("Close returned after %+v", d.events)
			}
		}
		if l, err := m.Acquire(t.Context(), "job"); l != nil || !errors.Is(err, lease.ErrClosed) {
			t.Errorf("Acquire: %v, %v", l, err)
		}
		if err := m.Close(); err != nil || !clk.closed {
			t.Errorf("Close: %v", err)
		}
		if told := d.of("job"); !equalStates(told, lease.StateHeld, lease.StateLost) {
			t.Errorf("told %v", told)
		}
	})
}

// closing is the clock of a manager that is closed just before the first renewal of a lease is timed.
type closing struct {
	*clocktest.Clock
	close  func()
	closed bool
}

func (c *closing) AfterFunc(d time.Duration, f func()) func() bool {
	if d > ttl/4 && d < ttl/3 && !c.closed { // no request is awaited for that
		c.closed = true
		go c.close()
		synctest.Wait() // it waits for the end of this lease now
	}
	return c.Clock.AfterFunc(d, f)
}

// A second Release returns when the first one is over, with what has come of that.
func TestReleaseDuringRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		n.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
		var first error
		done := make(chan struct{})
		go func() {
			defer close(done)
			first = l.Release(t.Context())
		}()
		synctest.Wait()
		second := l.Release(t.Context())
		if <-done; second == nil || second != first {
			t.Errorf("the second Release returned %v, the first %v", second, first)
		}
	})
}
