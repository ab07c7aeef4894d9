//go:build unix

package shard

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// fleet is the map of many slices, owned by many workers or by nobody, as an assigner has it.
type fleet struct {
	space   shardmap.Space
	members []member
	chunks  []*shardmap.Chunk
	a       *assigner
	wall    time.Time
}

// newFleet returns slices that are owned by owner(i), by the index of a worker; -1 is nobody. load is of slice i; nil if none is reported.
func newFleet(tb testing.TB, slices, workers int, owner func(i int) int, load func(i int) float64) *fleet {
	tb.Helper()
	f := &fleet{space: shardmap.Space{Format: shardmap.Format, Name: "s", Hashed: true, Bits: shardmap.BitsFor(slices)}, wall: clock.System().Wall()}
	f.space.Slices = (slices + f.space.Chunks() - 1) / f.space.Chunks()
	for w := range workers {
		session := fmt.Sprintf(".session/host-%d/1234/abcdefghijklm/%020d", w, w)
		f.members = append(f.members, member{Member: shardmap.Member{Session: session, Name: fmt.Sprint(w), Capacity: 1}})
	}
	n := 0
	f.a = &assigner{loads: newLoads(f.space.Chunks())}
	for i := range f.space.Chunks() {
		c := parsed(tb, f.space, i, nil)
		for j := range c.Slices {
			if w := owner(n); w >= 0 {
				if err := c.Give(j, "", f.members[w].Session, nil, f.wall.Add(-time.Hour)); err != nil {
					tb.Fatal(err)
				}
			}
			n++
		}
		f.chunks = append(f.chunks, parsed(tb, f.space, i, c))
	}
	if load == nil {
		return f
	}
	f.a.loads.follow(f.chunks, time.Second, f.wall)
	n = 0
	for i, c := range f.chunks {
		for j := range c.Slices {
			f.a.loads.chunks[i][j].load, f.a.loads.chunks[i][j].ok = load(n), true
			n++
		}
		f.a.loads.add(i)
	}
	return f
}

// parsed returns a chunk as it is read: as c, or as at first.
func parsed(tb testing.TB, space shardmap.Space, i int, c *shardmap.Chunk) *shardmap.Chunk {
	tb.Helper()
	rec := store.Record{Key: space.ChunkKey(i)}
	if c != nil {
		var err error
		if rec, err = c.Record("n"); err != nil {
			tb.Fatal(err)
		}
	}
	c, err := shardmap.ParseChunk(space, i, rec)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// assign does all that an assigner does in a round, but for the requests. It returns how many slices change.
func (f *fleet) assign(tb testing.TB, gone int) (changed int) {
	tb.Helper()
	p := &picture{
		space: f.space, members: f.members, chunks: f.chunks, closed: map[string]bool{}, wall: f.wall, loads: f.a.loads, ttl: 15 * time.Second,
		next: map[int]*shardmap.Chunk{},
	}
	if gone >= 0 {
		p.closed[f.members[gone].Session] = true
		p.members = append(append([]member{}, f.members[:gone]...), f.members[gone+1:]...)
	}
	f.a.loads.follow(p.chunks, p.ttl, p.wall)
	p.decide(Balance{})
	p.concerns()
	for _, i := range p.changed() {
		for j, s := range p.next[i].Slices {
			if len(p.chunks[i].Slices) != len(p.next[i].Slices) || s != p.chunks[i].Slices[j] {
				changed++
			}
		}
		if _, err := p.next[i].Record("n"); err != nil {
			tb.Fatal(err)
		}
	}
	return changed
}

// used returns how much processor time this process has used.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkAssign is one round of an assigner with 10,000 workers and 640,000 slices, without the requests.
func BenchmarkAssign(b *testing.B) {
	const workers, each, total = 10_000, 64, 4096 * 157 // 157 slices in each record
	rng := rand.New(rand.NewPCG(1, 2))
	load := func(int) float64 { return 100 * (0.75 + 0.5*rng.Float64()) } // so no worker is beyond the tolerance
	inRuns := func(i int) int { return i * workers / total }
	spread := func(i int) int { return i % workers }
	for _, c := range []struct {
		name  string
		owner func(i int) int
		load  func(i int) float64
		gone  int
	}{
		{"all, by number", func(int) int { return -1 }, nil, -1},
		{"all, by load", func(int) int { return -1 }, load, -1},
		{"a worker is lost, by number", inRuns, nil, 77},
		{"a worker is lost, by load", spread, load, 77},
		{"nothing changes, by number", inRuns, nil, -1},
		{"nothing changes, by load", spread, load, -1},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newFleet(b, workers*each, workers, c.owner, c.load)
			changed, before := f.assign(b, c.gone), used(b)
			for b.Loop() {
				changed = f.assign(b, c.gone)
			}
			b.ReportMetric(float64(used(b)-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(changed), "changed")
		})
	}
}
