package engines

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
)

// ours takes leases as a program does.
func ours(t testing.TB, k kind, srv *servers.Server) locker {
	t.Helper()
	m, err := lease.NewManager(k.prepare(t, srv).open(t, srv.Addr), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context, name string) (func() error, error) {
		l, err := m.Acquire(ctx, name)
		if err != nil {
			return nil, err
		}
		return func() error { return l.Release(ctx) }, nil
	}
}

// each benchmarks an engine, its own recipe, and its floor if there is one, on one server.
func each(b *testing.B, floors bool, bench func(b *testing.B, dial func() locker)) {
	for _, k := range kinds {
		b.Run("engine="+k.name, func(b *testing.B) {
			srv := k.start(b)
			b.Run("by=leasehold", func(b *testing.B) { bench(b, func() locker { return ours(b, k, srv) }) })
			if k.recipe != nil {
				b.Run("by="+k.recipe.name, func(b *testing.B) { bench(b, func() locker { return k.recipe.dial(b, srv) }) })
			}
			if floors && k.floor != nil {
				b.Run("by=floor", func(b *testing.B) { bench(b, func() locker { return k.floor(b, srv) }) })
			}
		})
	}
}

// BenchmarkPairs is one acquisition and its release, by callers of one process that each want a name of their own.
func BenchmarkPairs(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			each(b, true, func(b *testing.B, dial func() locker) {
				lock := dial()
				pair := func(name string) error {
					unlock, err := lock(b.Context(), name)
					if err == nil {
						err = unlock()
					}
					return err
				}
				for i := range callers { // connections, and what is made at the first use of a name
					if err := pair(strconv.Itoa(i)); err != nil {
						b.Fatal(err)
					}
				}
				times := b.N/callers + 1
				var group sync.WaitGroup
				before := spending(b)
				b.ResetTimer()
				for i := range callers {
					group.Go(func() {
						for range times {
							if err := pair(strconv.Itoa(i)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(callers*times)/b.Elapsed().Seconds(), "pairs/s")
				b.StopTimer()
				after, pairs := spending(b), float64(callers*times)
				b.ReportMetric(float64((after.clients-before.clients).Microseconds())/pairs, "client-µs/pair")
				b.ReportMetric(float64((after.servers-before.servers).Microseconds())/pairs, "server-µs/pair")
			})
		})
	}
}

// BenchmarkHandover is the time from before a release until another client, which was waiting, has the name.
func BenchmarkHandover(b *testing.B) {
	each(b, false, func(b *testing.B, dial func() locker) {
		one, other := dial(), dial()
		var took []time.Duration
		for b.Loop() {
			unlock, err := one(b.Context(), "handover")
			if err != nil {
				b.Fatal(err)
			}
			type held struct {
				at     time.Time
				unlock func() error
				err    error
			}
			next := make(chan held, 1)
			go func() {
				unlock, err := other(b.Context(), "handover")
				next <- held{time.Now(), unlock, err}
			}()
			time.Sleep(30 * time.Millisecond) // by then it waits
			start := time.Now()
			if err := unlock(); err != nil {
				b.Fatal(err)
			}
			h := <-next
			if h.err != nil {
				b.Fatal(h.err)
			}
			took = append(took, h.at.Sub(start))
			if err := h.unlock(); err != nil {
				b.Fatal(err)
			}
			one, other = other, one
		}
		slices.Sort(took)
		b.ReportMetric(0, "ns/op") // it would count the preparations
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	})
}
