package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store/faulty"
)

// A place in a line costs the same number of reads however long the line is.
func TestFinding_L8_AWaiterInLineLooksAtTheOneBeforeIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		few, many := w.readsInLine(10), w.readsInLine(90)
		t.Logf("reads per waiter in a TTL: %.1f in a line of 10, %.1f of 90", few, many)
		if many > few+1 {
			t.Errorf("a waiter reads %.1f times in a TTL in a line of 90, and %.1f times in one of 10", many, few)
		}
	})
}

// readsInLine returns how often each of so many who wait for a fair mutex reads in a TTL.
func (w *world) readsInLine(waiters int) float64 {
	w.T.Helper()
	ctx, cancel := context.WithCancel(w.T.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var reads atomic.Int64
	lock := func() {
		p := w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get {
				reads.Add(1)
			}
			return faulty.Fault{}
		})
		m, err := NewMutex(p.Session, "line", MutexOptions{Fair: true})
		if err != nil {
			w.T.Fatal(err)
		}
		running.Go(func() {
			hold, err := m.Lock(ctx)
			if err != nil {
				return // the end of the test
			}
			<-ctx.Done()
			if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
				w.T.Error(err)
			}
		})
	}
	for range waiters + 1 {
		lock()
		time.Sleep(ttl / 7)
		synctest.Wait()
	}
	time.Sleep(2 * ttl)
	reads.Store(0)
	const periods = 10
	time.Sleep(periods * ttl)
	return float64(reads.Load()) / float64(waiters) / periods
}

// Several in a row that die at once, with the holder, delay those behind them by less than two TTLs.
func TestFinding_L8_ManyDieInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all []*process
		for range 6 {
			p := w.process(nil)
			all = append(all, p)
			m, err := NewMutex(p.Session, "line", MutexOptions{Fair: true})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = m.Lock(t.Context()) }()
			time.Sleep(time.Second)
		}
		last := w.process(nil)
		m, err := NewMutex(last.Session, "line", MutexOptions{Fair: true})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan time.Time, 1)
		go func() {
			if _, err := m.Lock(t.Context()); err != nil {
				t.Error(err)
			}
			got <- time.Now()
		}()
		time.Sleep(2 * ttl)
		died := time.Now()
		for _, p := range all {
			p.Cut()
		}
		const most = ttl*9/5 + time.Second // 2/5, the observation, and a look every third
		if took := (<-got).Sub(died); took > most {
			t.Errorf("the one behind six that died waited for %v", took)
		}
	})
}
