package shard_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// joined returns a worker that owns all of a space of so many slices, on the system's clock.
func joined(tb testing.TB, space shard.Space) (*shard.Owner, *memory.Store) {
	tb.Helper()
	st := memory.New(memory.Options{})
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	o, err := shard.Join(tb.Context(), m, space, shard.Worker{Address: "a:1"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := o.Close(); err != nil {
			tb.Error(err)
		}
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	want := max(space.Slices, len(space.Names))
	for deadline := 0; len(o.Slices()) < want; deadline++ {
		if deadline > 10000 {
			tb.Fatal("the worker owns too little")
		}
		wait(time.Millisecond)
	}
	return o, st
}

func wait(d time.Duration) { <-time.After(d) }

func BenchmarkCheck(b *testing.B) {
	for _, space := range []shard.Space{{Name: "names", Names: names(64)}, {Name: "hashed", Hashed: true, Slices: 1280}} {
		b.Run(space.Name, func(b *testing.B) {
			o, _ := joined(b, space)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := o.Check(keys[i&63]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// At high rates most reports aren't counted, and cost next to nothing; at low ones each is.
func BenchmarkReport(b *testing.B) {
	o, _ := joined(b, shard.Space{Name: "s", Hashed: true, Slices: 64})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Report(keys[i&63], 1)
	}
}

// keys are those of names(64).
var keys = names(64)

func BenchmarkLookup(b *testing.B) {
	for _, slices := range []int{1280, 640_000} {
		b.Run(fmt.Sprint(slices), func(b *testing.B) {
			st := memory.New(memory.Options{})
			space := shard.Space{Name: "s", Hashed: true, Slices: slices}
			if slices < 10_000 {
				_, st = joined(b, space)
			} else {
				owned(b, st, space, 10_000)
			}
			r, err := shard.NewRouter(b.Context(), st, "s", shard.RouterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(r.Close)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, ok := r.Lookup(keys[i&63]); !ok {
					b.Fatal("nobody owns a key")
				}
			}
		})
	}
}

// A check, a report and a lookup allocate nothing.
func TestNothingIsAllocated(t *testing.T) {
	for _, space := range []shard.Space{{Name: "s", Names: names(64)}, {Name: "s", Hashed: true, Slices: 64}} {
		o, st := joined(t, space)
		r, err := shard.NewRouter(t.Context(), st, "s", shard.RouterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(1000, func() {
			if _, err := o.Check("p001"); err != nil {
				t.Error(err)
			}
			if _, ok := r.Lookup("p001"); !ok {
				t.Error("nobody owns it")
			}
			_, _ = o.Check("unknown") // of a space of names, nobody's
			o.Report("p001", 1)
			o.Report("unknown", 1)
		})
		r.Close()
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// owned has a space be owned by so many workers that aren't there.
func owned(tb testing.TB, st *memory.Store, space shard.Space, workers int) {
	tb.Helper()
	s := shardmap.Space{Format: shardmap.Format, Name: space.Name, Hashed: true, Bits: shardmap.BitsFor(space.Slices)}
	s.Slices = space.Slices / s.Chunks()
	data, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	put := func(rec store.Record) {
		if _, err := st.Put(tb.Context(), rec); err != nil {
			tb.Fatal(err)
		}
	}
	put(store.Record{Key: s.Key(), Data: data})
	n := 0
	for i := range s.Chunks() {
		c, err := shardmap.ParseChunk(s, i, store.Record{Key: s.ChunkKey(i)})
		if err != nil {
			tb.Fatal(err)
		}
		for j := range c.Slices {
			session := fmt.Sprintf(".session/host-%d/1234/abcdefghijklm/%020d", n*workers/space.Slices, n*workers/space.Slices)
			if err := c.Give(j, "", session, nil, clock.System().Wall()); err != nil {
				tb.Fatal(err)
			}
			n++
		}
		rec, err := c.Record("n")
		if err != nil {
			tb.Fatal(err)
		}
		put(rec)
	}
}
