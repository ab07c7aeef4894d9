package shards

import (
	"bytes"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/golden"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

var (
	fleetSize = flag.Int("shards.workers", 257, "workers of TestCost")
	manyNames = flag.Int("shards.names", 20_000, "named shards of TestCostOfNames")
)

const (
	ttl     = 15 * time.Second
	perEach = 64 // slices of a worker
)

// fleet is workers in virtual time, on one store in memory that counts.
type fleet struct {
	t       *testing.T
	db      *memory.DB
	all     *faulty.Store // what all of them share
	beside  atomic.Int64  // writes that are no heartbeats, with those that the store refuses
	workers []*worker
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)})}
	f.all = faulty.Wrap(f.db.Open(), func(op faulty.Op) faulty.Fault {
		if (op.Kind == faulty.Put || op.Kind == faulty.Delete) && !strings.HasPrefix(op.Key, ".session/") {
			f.beside.Add(1)
		}
		return faulty.Fault{}
	})
	return f
}

type worker struct {
	*shard.Owner
	m      *lease.Manager
	outage faulty.Outage
}

// join starts so many workers at once.
func (f *fleet) join(n int, space shard.Space) {
	f.t.Helper()
	var joining sync.WaitGroup
	made := make([]*worker, n)
	for i := range made {
		joining.Go(func() {
			w := &worker{}
			m, err := lease.NewManager(faulty.Wrap(f.all, w.outage.Plan(nil)), lease.Options{TTL: ttl, Clock: clocktest.New(clock.Instant(time.Hour))})
			if err != nil {
				f.t.Error(err)
				return
			}
			w.m = m
			if w.Owner, err = shard.Join(f.t.Context(), m, space, shard.Worker{Address: fmt.Sprintf("10.0.%d.%d:8080", i/250, i%250)}); err != nil {
				f.t.Error(err)
				return
			}
			made[i] = w
		})
	}
	joining.Wait()
	if f.t.Failed() {
		f.t.FailNow()
	}
	f.workers = append(f.workers, made...)
}

// settle waits until all slices of the space have an owner, and for a while longer. It returns how many those are.
func (f *fleet) settle(space shard.Space) (want int) {
	f.t.Helper()
	all, err := shard.All(f.t.Context(), f.db.Open(), space.Name) // it isn't counted
	if err != nil {
		f.t.Fatal(err)
	}
	want = len(all) // each record of the map has as many: it may be some more than the space asked for
	for tries := 0; f.owned() != want; tries++ {
		if tries > 600 {
			f.t.Fatalf("%d of %d slices have an owner", f.owned(), want)
		}
		time.Sleep(time.Second)
	}
	time.Sleep(ttl)
	return want
}

func (f *fleet) owned() (n int) {
	for _, w := range f.workers {
		n += len(w.Slices())
	}
	return n
}

// close ends all workers at once.
func (f *fleet) close() {
	f.t.Helper()
	var closing sync.WaitGroup
	for _, w := range f.workers {
		closing.Go(func() {
			w.outage.End()
			if err := w.Close(); err != nil {
				f.t.Error(err)
			}
			if err := w.m.Close(); err != nil {
				f.t.Error(err)
			}
		})
	}
	closing.Wait()
}

// count returns how many writes, reads and lists f makes.
func (f *fleet) count(do func()) (writes, reads, lists int) {
	w, r, l := f.all.Count(faulty.Put)+f.all.Count(faulty.Delete), f.all.Count(faulty.Get), f.all.Count(faulty.List)
	do()
	return f.all.Count(faulty.Put) + f.all.Count(faulty.Delete) - w, f.all.Count(faulty.Get) - r, f.all.Count(faulty.List) - l
}

// heap returns the bytes of all that is reachable.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// What a fleet writes is a heartbeat of each worker, every third of the TTL, and what moves: however many slices it owns.
func TestCost(t *testing.T) {
	var text bytes.Buffer
	n := *fleetSize
	fmt.Fprintf(&text, "\n| in virtual time, TTL %v | writes | a second | heartbeats a second, one for each worker and third of the TTL |\n|---|---|---|---|\n", ttl)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		before := heap()
		space := shard.Space{Name: "fleet", Hashed: true, Slices: perEach * n}
		began := time.Now()
		all := 0
		writes, _, _ := f.count(func() { f.join(n, space); all = f.settle(space) })
		beats := func(d time.Duration) float64 { return float64(len(f.workers)) * float64(d) / float64(ttl/3) }
		line := func(what string, writes int, took time.Duration, workers int) {
			l := fmt.Sprintf("| %s | %d | %.0f | %.0f |\n", what, writes, float64(writes)/took.Seconds(), float64(workers)/(ttl/3).Seconds())
			t.Log(l)
			text.WriteString(l)
		}
		line(fmt.Sprintf("%d workers join, and %d slices come to them", n, all), writes, time.Since(began), n)
		after := heap()
		const watched = 2 * ttl
		writes, reads, lists := f.count(func() { time.Sleep(watched) })
		line("nothing moves", writes, watched, n)
		if low, high := beats(watched)*0.9, beats(watched)*1.3; float64(writes) < low || float64(writes) > high {
			t.Errorf("%d writes in %v of %d workers while nothing moves, want %.0f to %.0f: a heartbeat of each, every third of the TTL", writes, watched, n, low, high)
		}
		began = time.Now()
		beside := f.beside.Load()
		writes, _, _ = f.count(func() {
			if err := f.workers[n/2].Leave(t.Context()); err != nil {
				t.Error(err)
			}
			if err := f.workers[n/2].m.Close(); err != nil {
				t.Error(err)
			}
			f.workers = slices.Delete(f.workers, n/2, n/2+1)
			f.settle(space)
		})
		line(fmt.Sprintf("a worker with %d slices leaves in order", perEach), writes, time.Since(began), n)
		// Each slice goes to a worker of its own, which is told of the record and says that it follows it. Beside that
		// there is what begins the moves of a record, what passes its slices on, and what says that the worker goes.
		beside = f.beside.Load() - beside
		t.Logf("%d of them are no heartbeats", beside)
		if most := int64(2*perEach + perEach/2); beside > most {
			t.Errorf("%d writes beside heartbeats when a worker with %d slices leaves, want at most %d", beside, perEach, most)
		}
		router := heap()
		r, err := shard.NewRouter(t.Context(), f.all, space.Name, shard.RouterOptions{Clock: clocktest.New(0)})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		router = heap() - router
		r.Close()
		fmt.Fprintf(&text, "\nWhile nothing moves there are also %.0f reads and %.2f lists a second, most of them the assigner's and of those who wait to be the next one.\n",
			float64(reads)/watched.Seconds(), float64(lists)/watched.Seconds())
		fmt.Fprintf(&text, "A worker takes %d KiB of memory with its %d slices, its part of the store included; a router of all %d slices takes %.0f MiB.\n",
			(after-before)/uint64(n)>>10, perEach, all, float64(router)/(1<<20))
		f.close()
	})
	t.Log("\n" + text.String())
	if *update {
		text.WriteString("\n")
		golden.Check(t, page, "cost", command, text.Bytes(), true)
	}
}

// Many shards that have names cost their few workers' heartbeats.
func TestCostOfNames(t *testing.T) {
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		const workers = 20
		f := newFleet(t)
		space := shard.Space{Name: "named", Expect: *manyNames}
		for i := range *manyNames {
			space.Names = append(space.Names, fmt.Sprintf("tenant-%07d", i))
		}
		before := heap()
		writes, _, _ := f.count(func() { f.join(workers, space); f.settle(space) })
		after := heap()
		const watched = 2 * ttl
		quiet, _, _ := f.count(func() { time.Sleep(watched) })
		if most := 1.3 * workers * float64(watched) / float64(ttl/3); float64(quiet) > most {
			t.Errorf("%d writes in %v while nothing moves, want at most %.0f", quiet, watched, most)
		}
		fmt.Fprintf(&text, "\n%d named shards come to %d workers by %d writes, and from then on cost %.0f a second. Each shard takes %d bytes of memory, the store included.\n",
			*manyNames, workers, writes, float64(quiet)/watched.Seconds(), (after-before)/uint64(*manyNames))
		f.close()
	})
	t.Log(text.String())
	if *update {
		text.WriteString("\n")
		golden.Check(t, page, "names", command, text.Bytes(), true)
	}
}
