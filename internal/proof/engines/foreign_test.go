package engines

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// BenchmarkForeignWrite is a write of a key that nobody waits for, while nobody waits, and while 200 stores wait for 10 other keys
// each: waiters that hear of what others write make it dearer. What the processors spend while nobody writes is told apart.
func BenchmarkForeignWrite(b *testing.B) {
	const stores, keys = 200, 10
	for _, k := range kinds {
		if k.crowd == nil {
			continue
		}
		b.Run("engine="+k.name, func(b *testing.B) {
			srv := k.start(b, k.crowd.options...)
			inst := k.prepare(b, srv)
			open := func(t testing.TB, srv *servers.Server) store.Store { return inst.open(t, srv.Addr) }
			writer := open(b, srv)
			b.Run("waiters=0", func(b *testing.B) { foreignWrites(b, writer, 0) })
			if k.crowd.open != nil {
				open = k.crowd.open
			}
			var waiting atomic.Int64
			for i := range stores {
				st := open(b, srv)
				for j := range keys {
					waiting.Add(1)
					go func() {
						defer waiting.Add(-1)
						_, _ = st.(store.Waiter).Wait(b.Context(), fmt.Sprint("awaited", i, ".", j), "")
					}()
				}
			}
			idle := settle(b)
			b.Run(fmt.Sprint("waiters=", stores*keys), func(b *testing.B) { foreignWrites(b, writer, idle) })
			if n := waiting.Load(); n != stores*keys {
				b.Errorf("%d wait, want %d", n, stores*keys)
			}
		})
	}
}

// settle returns what share of a processor the servers spend while nothing is asked of them, once that doesn't fall any more.
func settle(b *testing.B) float64 {
	const window = 3 * time.Second
	for last := math.Inf(1); ; {
		before := spending(b)
		time.Sleep(window)
		share := float64(spending(b).servers-before.servers) / float64(window)
		if share >= last*0.9 {
			return share
		}
		last = share
	}
}

func foreignWrites(b *testing.B, st store.Store, idle float64) {
	rec := storetest.MustPut(b, st, store.Record{Key: "foreign " + rand.Text(), Nonce: "n"})
	var took []time.Duration
	before, start := spending(b), time.Now()
	for b.Loop() {
		start := time.Now()
		rec = storetest.MustPut(b, st, rec)
		took = append(took, time.Since(start))
	}
	all, after := time.Since(start), spending(b)
	slices.Sort(took)
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(len(took)) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(each(after.servers-before.servers-time.Duration(idle*float64(all))), "server-µs/write")
	b.ReportMetric(idle*100, "idle-%")
}
