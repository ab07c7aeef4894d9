package server

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkPairs is an acquisition and its release by many clients at a time: each with a name of its own, or all with one; over
// connections that stay open, or, as RDLM's own clients do it, with one for each request.
func BenchmarkPairs(b *testing.B) {
	for _, rv := range rivals {
		b.Run("server="+rv.name, func(b *testing.B) {
			connect, addr, process := rv.start(b)
			for _, mode := range []string{"distinct", "one", "fresh"} {
				if mode == "fresh" && rv.name != "leasehold" && rv.name != "rdlm" {
					continue
				}
				for _, clients := range []int{1, 32, 512} {
					b.Run(fmt.Sprintf("mode=%s/clients=%d", mode, clients), func(b *testing.B) {
						all := connected(b, connect, addr, clients, mode == "fresh")
						before := processor(b, process)
						pairs(b, all, mode == "one")
						if used := processor(b, process) - before; process != 0 {
							b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/pair")
						}
					})
				}
			}
		})
	}
}

func connected(b *testing.B, connect func(*wire) (locker, error), addr string, clients int, fresh bool) (all []locker) {
	b.Helper()
	for i := range clients {
		w, err := dial(b.Context(), addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(w.close)
		if w.fresh = fresh; fresh {
			w.from = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}
		}
		c, err := connect(w)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// pairs has the clients do b.N pairs together.
func pairs(b *testing.B, all []locker, oneName bool) {
	b.Helper()
	var group sync.WaitGroup
	took := make([][]time.Duration, len(all))
	b.ResetTimer()
	for i, c := range all {
		name := "one"
		if !oneName {
			name = fmt.Sprintf("name%d", i)
		}
		group.Go(func() {
			for range share(b.N, len(all), i) {
				begun := time.Now()
				term, err := c.lock(name)
				if err == nil {
					err = c.unlock(name, term)
				}
				if err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	percentiles(b, slices.Concat(took...))
}

// share is how many of n things the i-th of several does.
func share(n, of, i int) int { return (n + i) / of }

func percentiles(b *testing.B, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkHandover is the time from before a release is sent until the client that waited for it has its answer.
func BenchmarkHandover(b *testing.B) {
	for _, rv := range rivals[:len(rivals)-1] {
		b.Run("server="+rv.name, func(b *testing.B) {
			connect, addr, _ := rv.start(b)
			b.Run("waiters=1", func(b *testing.B) {
				handovers(b, connected(b, connect, addr, 2, false))
			})
		})
	}
}

func handovers(b *testing.B, all []locker) {
	b.Helper()
	type held struct {
		term string
		at   time.Time
		err  error
	}
	term, err := all[0].lock("one")
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := range b.N {
		holder, next := all[i%2], all[(i+1)%2]
		has := make(chan held, 1)
		go func() {
			term, err := next.lock("one")
			has <- held{term, time.Now(), err}
		}()
		time.Sleep(5 * time.Millisecond) // nobody says that it waits
		begun := time.Now()
		if err := holder.unlock("one", term); err != nil {
			b.Fatal(err)
		}
		h := <-has
		if h.err != nil {
			b.Fatal(h.err)
		}
		if h.at.After(begun) { // else it had not waited
			took = append(took, h.at.Sub(begun))
		}
		term = h.term
	}
	b.ReportMetric(0, "ns/op")
	percentiles(b, took)
	if err := all[b.N%2].unlock("one", term); err != nil {
		b.Fatal(err)
	}
}
