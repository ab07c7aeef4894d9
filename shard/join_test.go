package shard_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/faulty"
)

// A worker that can't tell the assigner at once has joined all the same, and gets slices.
func TestJoinWithoutTheBell(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(8)}
		first := w.join(space, shard.Worker{})
		settle()
		net := faulty.Wrap(faulty.Ageless(w.db.Open()), func(op faulty.Op) faulty.Fault {
			if op.Key == ".shard/s/bell" && op.Kind == faulty.Put {
				return faulty.Fault{Err: faulty.ErrLost}
			}
			return faulty.Fault{}
		})
		m, err := lease.NewManager(net, lease.Options{TTL: ttl, Clock: clocktest.New(clock.Instant(time.Hour))})
		if err != nil {
			t.Fatal(err)
		}
		var reported atomic.Int32
		o, err := shard.Join(t.Context(), m, space, shard.Worker{OnError: func(error) { reported.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl / 3)
		settle()
		if n, m := len(o.Slices()), len(first.Slices()); n != 4 || m != 4 || reported.Load() == 0 {
			t.Errorf("it has %d slices, the other %d, and %d errors were reported; want 4, 4 and one at the least", n, m, reported.Load())
		}
		net.SetPlan(nil)
		if err := o.Leave(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
}
