package shard_test

import (
	"context"
	"errors"
	"strings"
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

// A store that is slow, or doesn't answer, delays a worker that joins, and does not end it. OnError is called once for each reason.
func TestJoinOutlastsAnOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for what, key := range map[string]string{"space": ".shard/s", "chunk": ".shard/s/c/", "session": ".session/", "member": ".shard/s/m/"} {
			var failing atomic.Int32
			failing.Store(5)
			net := faulty.Wrap(faulty.Ageless(w.db.Open()), func(op faulty.Op) faulty.Fault {
				if strings.HasPrefix(op.Key, key) && failing.Add(-1) >= 0 {
					return faulty.Fault{Drop: true} // until the request gives up
				}
				return faulty.Fault{}
			})
			m, err := lease.NewManager(net, lease.Options{TTL: ttl, Clock: clocktest.New(clock.Instant(time.Hour))})
			if err != nil {
				t.Fatal(err)
			}
			var reported atomic.Int32
			o, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Names: names(8)}, shard.Worker{OnError: func(error) { reported.Add(1) }})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if n := reported.Load(); failing.Load() >= 0 || n > 1 || n == 0 && what != "session" { // which retries by itself
				t.Errorf("%s: %d errors to come, %d were reported", what, failing.Load(), n)
			}
			if err := errors.Join(o.Leave(t.Context()), m.Close(), net.Close()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// A Join in an outage ends with its context. An error that waiting can't mend is returned at once.
func TestJoinEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.join(shard.Space{Name: "s", Names: names(2)}, shard.Worker{})
		m, begun := p.Manager(), time.Now()
		if _, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Hashed: true}, shard.Worker{}); !errors.Is(err, shard.ErrMismatch) || time.Since(begun) > 0 {
			t.Errorf("another kind: %v, after %v", err, time.Since(begun))
		}
		p.outage.Start()
		why := errors.New("an operator ends it")
		ctx, cancel := context.WithTimeoutCause(t.Context(), ttl, why)
		defer cancel()
		if _, err := shard.Join(ctx, m, shard.Space{Name: "t", Names: names(2)}, shard.Worker{}); !errors.Is(err, why) || time.Since(begun) > 2*ttl {
			t.Errorf("in an outage: %v, after %v", err, time.Since(begun))
		}
	})
}
