package leasetest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// Host is a machine: its clock, and its connection to the store.
type Host struct {
	World  *World
	Clk    *clocktest.Clock
	Net    *faulty.Store
	Outage *faulty.Outage

	cut atomic.Bool
}

// Host returns a machine more. plan is what happens to its operations, outages apart; nil is
// nothing. Its clock is allowed to run, and its connection closed, when the test is over.
func (w *World) Host(plan faulty.Plan) *Host {
	w.mu.Lock()
	w.hosts++
	n := w.hosts
	w.mu.Unlock()
	h := &Host{World: w, Clk: clocktest.New(clock.Instant(n) * 1e12), Outage: &faulty.Outage{}}
	h.Net = faulty.Wrap(w.Open(), h.faults(plan))
	w.T.Cleanup(func() {
		if err := h.Net.Close(); err != nil {
			w.T.Error(err)
		}
	})
	return h
}

// Plan sets what happens to the host's operations from now on, outages apart.
func (h *Host) Plan(p faulty.Plan) { h.Net.SetPlan(h.faults(p)) }

func (h *Host) faults(p faulty.Plan) faulty.Plan {
	p = h.Outage.Plan(p)
	return func(op faulty.Op) faulty.Fault {
		if h.cut.Load() {
			return faulty.Fault{Drop: true}
		}
		return p(op)
	}
}

// Cut has the connection die quietly. Waits that have begun then hear of nothing, after Heal
// neither; with an Outage they resume when it ends.
func (h *Host) Cut() { h.cut.Store(true) }

// Heal lets operations that begin from now on pass.
func (h *Host) Heal() { h.cut.Store(false) }

// Manage starts a manager on the host. st is its connection, or a wrapper of that. The manager is
// closed when the test is over.
func (h *Host) Manage(st store.Store, o lease.Options) *lease.Manager {
	h.World.T.Helper()
	o.Clock = h.Clk
	m, err := lease.NewManager(st, o)
	if err != nil {
		h.World.T.Fatal(err)
	}
	h.World.T.Cleanup(func() {
		h.Clk.Resume()
		if err := m.Close(); err != nil {
			h.World.T.Error(err)
		}
	})
	return m
}

// Node is a host with a manager.
type Node struct {
	*lease.Manager
	*Host
}

// Node starts a host with a manager.
func (w *World) Node(o lease.Options) *Node {
	w.T.Helper()
	h := w.Host(nil)
	return h.Node(h.Net, o)
}

// Node starts a manager on the host, as [Host.Manage] does.
func (h *Host) Node(st store.Store, o lease.Options) *Node {
	h.World.T.Helper()
	return &Node{h.Manage(st, o), h}
}

// Take is Acquire of a name that has to be had within 5 TTLs.
func (n *Node) Take(name string) *lease.Lease {
	n.World.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*TTL)
	defer cancel()
	l, err := n.Acquire(ctx, name)
	if err != nil {
		n.World.T.Fatalf("Acquire(%s): %v", name, err)
	}
	n.World.Acquired(l)
	return l
}

// Open opens a session.
func (n *Node) Open() *lease.Session {
	n.World.T.Helper()
	s, err := n.OpenSession(context.Background())
	if err != nil {
		n.World.T.Fatalf("OpenSession: %v", err)
	}
	return s
}

// Under is Acquire of a name that the session keeps.
func (n *Node) Under(s *lease.Session, name string) *lease.Lease {
	n.World.T.Helper()
	l, err := s.Acquire(context.Background(), name)
	if err != nil {
		n.World.T.Fatalf("Acquire(%s) under a session: %v", name, err)
	}
	n.World.Acquired(l)
	return l
}

// Process is a host with a session.
type Process struct {
	*lease.Session
	*Host
}

// Process starts a manager on the host, as [Host.Manage] does, and opens a session.
func (h *Host) Process(st store.Store, o lease.Options) *Process {
	h.World.T.Helper()
	return &Process{h.Node(st, o).Open(), h}
}

// Acquisition is an Acquire that runs in the background.
type Acquisition struct {
	Done  <-chan struct{} // closed when the Acquire is over
	Lease *lease.Lease    // then
	Err   error
	At    time.Time
}

// Acquiring begins an Acquire, and returns when that waits, or is over.
func (n *Node) Acquiring(ctx context.Context, name string) *Acquisition {
	done := make(chan struct{})
	a := &Acquisition{Done: done}
	go func() {
		defer close(done)
		a.Lease, a.Err = n.Acquire(ctx, name)
		a.At = time.Now()
		if a.Err == nil {
			n.World.Acquired(a.Lease)
		}
	}()
	synctest.Wait()
	return a
}

// Wait returns the lease, which has to come within limit of start.
func (a *Acquisition) Wait(t *testing.T, start time.Time, limit time.Duration) *lease.Lease {
	t.Helper()
	<-a.Done
	if a.Err != nil {
		t.Fatalf("Acquire: %v", a.Err)
	}
	if d := a.At.Sub(start); d > limit {
		t.Errorf("acquired after %v, want %v at most", d, limit)
	}
	return a.Lease
}

// Pending fails if the Acquire is over already.
func (a *Acquisition) Pending(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-a.Done:
		t.Errorf("Acquire has returned %v, %v; want it waiting", a.Lease, a.Err)
	default:
	}
}
