package shard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// firstKeeps gives all slices to the worker "w0", and when that leaves one to each of the others.
type firstKeeps struct{}

func (firstKeeps) Plan(s *shard.State) (moves []shard.Move) {
	first := -1
	var others []int
	for i, w := range s.Workers {
		if w.Name != "w0" {
			others = append(others, i)
		} else if !w.Goes {
			first = i
		}
	}
	for i, sl := range s.Slices {
		to := first
		if to < 0 {
			to = others[i%len(others)]
		}
		if sl.Owner != to && sl.Next != to {
			moves = append(moves, shard.Move{Slice: i, To: to})
		}
	}
	return moves
}

// refused counts the writes of the map that the store refuses.
type refused struct {
	*faulty.Store
	n *atomic.Int64
}

func (s refused) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	got, err := s.Store.Put(ctx, rec)
	if errors.Is(err, store.ErrConflict) && strings.HasPrefix(rec.Key, ".shard/s/c/") {
		s.n.Add(1)
	}
	return got, err
}

// A worker leaves a slice to each of 40 others that don't know the record yet, over a network that takes 30 ms there and as long back: no
// write of its own is refused, and no slice waits for the write of another one.
func TestNobodyRefusesTheWorkerThatLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n, way = 40, 30 * time.Millisecond
		space := shard.Space{Name: "s"}
		for i := range n {
			space.Names = append(space.Names, fmt.Sprintf("k%02d", i))
		}
		var mu sync.Mutex
		ends, gaps := map[string]time.Time{}, map[string]time.Duration{}
		var own atomic.Int64
		var first *shard.Owner
		for i := range n + 1 {
			net := faulty.Wrap(faulty.Ageless(w.db.Open()), func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Push || op.Kind == faulty.Wait {
					return faulty.Fault{Delay: way}
				}
				return faulty.Fault{Delay: way, ReplyDelay: way}
			})
			var st store.Store = net
			if i == 0 {
				st = refused{net, &own}
			}
			m, err := lease.NewManager(st, lease.Options{TTL: ttl, Clock: clocktest.New(clock.Instant(time.Hour))})
			if err != nil {
				t.Fatal(err)
			}
			o, err := shard.Join(t.Context(), m, space, shard.Worker{
				Name: fmt.Sprint("w", i), Strategy: firstKeeps{},
				Start: func(_ context.Context, s *shard.Slice) error {
					mu.Lock()
					defer mu.Unlock()
					if at, ok := ends[s.Name]; ok {
						gaps[s.Name] = time.Since(at)
					}
					return nil
				},
				Drain: func(_ context.Context, s *shard.Slice) {
					mu.Lock()
					defer mu.Unlock()
					ends[s.Name] = time.Now()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _, _ = o.Close(), m.Close(), net.Close() })
			if i == 0 {
				first = o
			}
			settle()
		}
		if got := len(first.Slices()); got != n {
			t.Fatalf("the first worker has %d of %d slices", got, n)
		}
		own.Store(0)
		if err := first.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle()
		mu.Lock()
		defer mu.Unlock()
		if got := own.Load(); got > 0 {
			t.Errorf("%d writes of the worker that leaves were refused", got)
		}
		longest := time.Duration(0)
		for _, gap := range gaps {
			longest = max(longest, gap)
		}
		t.Logf("the longest gap: %v", longest)
		if most := 5 * way; len(gaps) != n || longest > most {
			t.Errorf("%d slices have moved, the longest gap is %v: want %d and at most %v", len(gaps), longest, n, most)
		}
	})
}
