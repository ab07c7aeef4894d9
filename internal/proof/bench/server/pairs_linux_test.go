package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
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
						pairs(b, all, mode == "one", rv.name != "leasehold")
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
func pairs(b *testing.B, all []locker, oneName, peer bool) {
	b.Helper()
	b.ResetTimer()
	r := race(all, b.N, oneName)
	b.StopTimer()
	if r.err != nil {
		b.Error(r.err)
	}
	r.report(b, len(all), peer)
}

// report reports the pairs that were done. That a peer resets connections is a figure, and a failure that Leasehold does.
func (r result) report(b *testing.B, clients int, peer bool) {
	b.Helper()
	switch {
	case r.reset > 0 && peer:
		b.ReportMetric(float64(r.reset), "clients-reset")
	case r.reset > 0:
		b.Errorf("%d of %d clients lost their connections: %v", r.reset, clients, r.by)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(r.took))/b.Elapsed().Seconds(), "pairs/s")
	percentiles(b, r.took)
}

// result is what came of a race: how long each pair took that was done, how many clients had their connection reset and did no more, by
// what the first of them, and what else failed first.
type result struct {
	took    []time.Duration
	reset   int
	by, err error
}

// race has the clients do n pairs together.
func race(all []locker, n int, oneName bool) (r result) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for i, c := range all {
		name := "one"
		if !oneName {
			name = fmt.Sprintf("name%d", i)
		}
		group.Go(func() {
			took, err := several(c, name, share(n, len(all), i))
			mu.Lock()
			defer mu.Unlock()
			r.took = append(r.took, took...)
			switch {
			case isReset(err):
				r.reset, r.by = r.reset+1, cmp.Or(r.by, err)
			case err != nil:
				r.err = cmp.Or(r.err, err)
			}
		})
	}
	group.Wait()
	return r
}

// several does n pairs, one after the other, until one fails.
func several(c locker, name string, n int) (took []time.Duration, err error) {
	for range n {
		begun := time.Now()
		term, err := c.lock(name)
		if err == nil {
			err = c.unlock(name, term)
		}
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// isReset reports whether the peer ended the connection.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
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
