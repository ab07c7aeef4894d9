package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/lease"
)

// diary keeps what OnEvent is told.
type diary struct {
	mu     sync.Mutex
	events []lease.Event
}

func (d *diary) note(e lease.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// of returns the states of that name's leases, once all that was caused is told.
func (d *diary) of(name string) (states []lease.State) {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Name == name {
			states = append(states, e.State)
		}
	}
	return states
}

// OnEvent may call what it likes of its manager, of its leases and sessions, and of others: it holds no lock of theirs.
func TestOnEventMayCallTheManager(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		var n *node
		other := w.Node(lease.Options{})
		leases := make(chan *lease.Lease, 1) // of the name that was just acquired
		calls := 0
		n = w.Node(lease.Options{OnEvent: func(e lease.Event) {
			d.note(e)
			if e.Name != "job" {
				return
			}
			calls++
			ctx := context.Background()
			l := <-leases
			leases <- l
			_, _, _, _ = l.Check(), l.Left(), l.Context(), l.Events()
			switch e.State {
			case lease.StateHeld:
				if err := l.Release(ctx); err != nil {
					t.Errorf("Release: %v", err)
				}
			case lease.StateReleased:
				s, err := n.OpenSession(ctx)
				if err != nil {
					t.Errorf("OpenSession: %v", err)
				}
				if err := s.Run(ctx, "kept", func(context.Context, *lease.Lease) error { return nil }); err != nil {
					t.Errorf("Session.Run: %v", err)
				}
				if _, err := s.Acquire(ctx, "ended"); err != nil {
					t.Errorf("Session.Acquire: %v", err)
				}
				if err := s.Close(ctx); err != nil {
					t.Errorf("Session.Close: %v", err)
				}
				if _, err := n.TryAcquire(ctx, "next"); err != nil {
					t.Errorf("TryAcquire: %v", err)
				}
				if _, err := n.Break(ctx, "next", lease.EndTerm{Token: w.Get("next").Token}); err != nil {
					t.Errorf("Break: %v", err)
				}
				if err := other.Close(); err != nil {
					t.Errorf("Close of another manager: %v", err)
				}
			}
		}})
		leases <- n.Take("job")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
		for name, want := range map[string][]lease.State{
			"job": {lease.StateHeld, lease.StateReleased}, "kept": {lease.StateHeld, lease.StateReleased},
			"ended": {lease.StateHeld, lease.StateReleased}, "next": {lease.StateHeld, lease.StateLost},
		} {
			if got := d.of(name); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

// A callback that takes its time delays no acquisition, no renewal, no loss and no release; what it misses meanwhile is told in order.
func TestASlowOnEventDelaysNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		slow := make(chan struct{})
		n := w.Node(lease.Options{OnEvent: func(e lease.Event) {
			<-slow
			d.note(e)
		}})
		start := time.Now()
		l, s := n.Take("job"), n.Open()
		kept := n.Under(s, "kept")
		if time.Since(start) != 0 {
			t.Errorf("acquiring took %v", time.Since(start))
		}
		time.Sleep(time.Hour)
		valid(t, l)
		valid(t, kept)
		n.Outage.StartRefusing(errRefused)
		time.Sleep(6 * time.Second) // jeopardy
		n.Outage.End()
		time.Sleep(time.Hour)
		valid(t, l)
		valid(t, kept)
		release(t, l)
		n.Outage.StartRefusing(errRefused)
		time.Sleep(validity)
		lostWith(t, kept, lease.CauseOutage)
		if got := d.of("job"); len(got) != 0 {
			t.Errorf("told %v while the first call is under way", got)
		}
		close(slow)
		if got, want := d.of("job"), []lease.State{lease.StateHeld, lease.StateJeopardy, lease.StateHeld, lease.StateReleased}; !slices.Equal(got, want) {
			t.Errorf("job: %v, want %v", got, want)
		}
		if got, want := d.of("kept"), []lease.State{lease.StateHeld, lease.StateLost}; !slices.Equal(got, want) {
			t.Errorf("kept: %v, want %v", got, want)
		}
	})
}

// Close returns when OnEvent has been told of every end, and has returned. After that nothing is told.
func TestCloseWaitsForOnEvent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		n := w.Node(lease.Options{OnEvent: func(e lease.Event) {
			time.Sleep(time.Second)
			d.note(e)
		}})
		for i := range 3 {
			n.Take(fmt.Sprint("own/", i))
		}
		s := n.Open()
		for i := range 3 {
			n.Under(s, fmt.Sprint("kept/", i))
		}
		time.Sleep(time.Minute)
		start := time.Now()
		_ = n.Close()
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("Close took %v, want as long as 7 calls of OnEvent", took)
		}
		d.mu.Lock()
		told := len(d.events)
		for _, e := range d.events[7:] {
			if e.State != lease.StateLost || !errors.Is(e.Err, lease.ErrClosed) {
				t.Errorf("%+v", e)
			}
		}
		d.mu.Unlock()
		if told != 14 {
			t.Errorf("%d events, want the beginning and the end of 6 leases and a session", told)
		}
		if _, err := n.TryAcquire(t.Context(), "late"); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("TryAcquire after Close: %v", err)
		}
		if got := d.of("late"); len(got) != 0 {
			t.Errorf("told %v after Close", got)
		}
	})
}

// Whatever runs beside Close: of each lease OnEvent is told its beginning and its end, once and in order, or nothing; and nothing after Close.
func TestOnEventBesideClose(t *testing.T) {
	for round := range 20 {
		inWorld(t, func(t *testing.T, w *world) {
			var d diary
			closed := false // guarded by d.mu
			n := w.Node(lease.Options{OnEvent: func(e lease.Event) {
				d.note(e)
				d.mu.Lock()
				defer d.mu.Unlock()
				if closed {
					t.Errorf("told %+v after Close", e)
				}
			}})
			s := n.Open()
			var wg sync.WaitGroup
			steps := make(chan struct{}, 1<<10)
			for i := range 8 {
				name := fmt.Sprint("name/", i)
				acquire := n.TryAcquire
				if i%2 == 0 {
					acquire = s.TryAcquire
				}
				wg.Go(func() {
					for {
						l, err := acquire(context.Background(), name)
						if err != nil {
							return
						}
						select {
						case steps <- struct{}{}:
						default:
						}
						if i%4 > 1 && l.Release(context.Background()) != nil {
							return
						}
					}
				})
			}
			wg.Go(func() { _, _ = n.OpenSession(context.Background()) })
			for range round {
				<-steps
			}
			_ = n.Close()
			d.mu.Lock()
			closed = true
			d.mu.Unlock()
			wg.Wait()
			synctest.Wait()
			begun := map[string]bool{}
			for _, e := range d.events {
				id := fmt.Sprint(e.Name, e.Token)
				if held := e.State == lease.StateHeld; held == begun[id] {
					t.Errorf("%s of %s, begun: %v", e.State, id, begun[id])
				}
				begun[id] = e.State == lease.StateHeld
			}
			for id, open := range begun {
				if open {
					t.Errorf("of the end of %s nothing was told", id)
				}
			}
		})
	}
}

// Each event says whose it is, in a log as well: held, jeopardy, lost and released, of a lease, of a session and of what it keeps.
func TestEventsInALog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		n := w.Node(lease.Options{OnEvent: d.note})
		l, s := n.Take("job"), n.Open()
		kept := n.Under(s, "kept")
		release(t, l)
		n.Outage.StartRefusing(errRefused)
		time.Sleep(validity)
		lostWith(t, kept, lease.CauseOutage)
		synctest.Wait()
		seen := map[lease.State]bool{}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, e := range d.events {
			seen[e.State] = true
			attrs := map[string]string{}
			for _, at := range e.LogValue().Group() {
				attrs[at.Key] = at.Value.String()
			}
			if e.Holder != n.Holder() || attrs["name"] != e.Name || attrs["token"] != e.Token.String() || attrs["holder"] != n.Holder() || attrs["state"] != string(e.State) {
				t.Errorf("%+v: %v", e, attrs)
			}
			if (attrs["error"] != "") != (e.Err != nil) || attrs["left"] == "" {
				t.Errorf("%+v: %v", e, attrs)
			}
		}
		for _, state := range []lease.State{lease.StateHeld, lease.StateJeopardy, lease.StateLost, lease.StateReleased} {
			if !seen[state] {
				t.Errorf("no event %s", state)
			}
		}
	})
}
