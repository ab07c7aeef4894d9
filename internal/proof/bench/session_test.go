//go:build unix

package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// counting counts writes.
type counting struct {
	store.Store
	puts atomic.Int64
}

func (c *counting) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	c.puts.Add(1)
	return c.Store.Put(ctx, rec)
}

// BenchmarkSession takes 100,000 leases in one session on the file store, and then looks on for three TTLs. It
// reports what a lease costs in memory, and how many writes keep them all.
func BenchmarkSession(b *testing.B) {
	const leases, callers, ttl = 100_000, 64, 3 * time.Second
	for b.Loop() {
		st := &counting{Store: openFile(b)}
		m := newManager(b, st, lease.Options{TTL: ttl})
		s, err := m.OpenSession(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		before := heap()
		clk := clock.System()
		start := clk.Now()
		held := make([]*lease.Lease, leases)
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				for k := i; k < leases; k += callers {
					l, err := s.Acquire(b.Context(), fmt.Sprintf("shard/%d", k))
					if err != nil {
						b.Error(err)
						return
					}
					held[k] = l
				}
			})
		}
		group.Wait()
		b.ReportMetric(leases/clk.Now().Sub(start).Seconds(), "acquired/s")
		b.ReportMetric(float64(heap()-before)/leases, "B/lease")

		puts := st.puts.Load()
		if err := clock.Sleep(b.Context(), clk, 3*ttl); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(st.puts.Load()-puts)/9, "writes/third-of-TTL")
		for _, l := range held {
			if err := l.Check(); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(b.Context()); err != nil {
			b.Error(err)
		}
	}
}

// heap returns the bytes that are in use once the garbage is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers have let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
