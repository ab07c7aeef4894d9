package shard

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// What is known of a slice is known of its parts when it splits, and of the whole when it merges; a hot key's load stays with the key.
func TestLoadIsKnownThroughSplits(t *testing.T) {
	space := shardmap.Space{Name: "s", Hashed: true, Slices: 1}
	chunk := func(from ...uint64) *shardmap.Chunk {
		c := &shardmap.Chunk{Space: space}
		for i, f := range from {
			s := shardmap.Slice{From: f, To: math.MaxUint64}
			if i+1 < len(from) {
				s.To = from[i+1] - 1
			}
			c.Slices = append(c.Slices, s)
		}
		return c
	}
	const hot = uint64(1) << 62
	was := []known{{from: 0, to: math.MaxUint64, load: 100, ok: true, hot: []HotKey{{Hash: hot, Load: 60}}}}
	parts := align(was, chunk(0, hot, hot+1, 1<<63))
	for i, want := range []float64{10, 60, 10, 20} {
		if got := parts[i]; math.Abs(got.load-want) > 0.01 || !got.ok || len(got.hot) != map[bool]int{true: 1}[i == 1] {
			t.Errorf("part %d has %+v, want %v", i, got, want)
		}
	}
	if whole := align(parts, chunk(0)); math.Abs(whole[0].load-100) > 0.01 || len(whole[0].hot) != 1 {
		t.Errorf("the whole has %+v", whole[0])
	}
	if none := align(nil, chunk(0)); none[0].ok {
		t.Errorf("%+v is known", none[0])
	}
}

// The mean of what a digest leaves out isn't taken for a slice that has only just come, and isn't measured yet.
func TestASliceThatHasJustComeIsKnownFromBefore(t *testing.T) {
	space := shardmap.Space{Name: "s", Hashed: true, Slices: 2}
	wall := time.Unix(1_800_000_000, 0)
	c := &shardmap.Chunk{Space: space, Slices: []shardmap.Slice{
		{To: 1<<63 - 1, Owner: "a", Token: fence.Token(wall.UnixMilli() - 1000)},
		{From: 1 << 63, To: math.MaxUint64, Owner: "a", Token: fence.Token(wall.UnixMilli() - 60_000)},
	}}
	l := newLoads(1)
	l.follow([]*shardmap.Chunk{c}, 15*time.Second, wall)
	for j := range l.chunks[0] {
		l.chunks[0][j].load, l.chunks[0][j].ok = 500, true
	}
	l.take("a", shardmap.Digest{Rest: 8}.Text())
	l.follow([]*shardmap.Chunk{c}, 15*time.Second, wall)
	if a, b := l.chunks[0][0].load, l.chunks[0][1].load; a != 500 || b != 8 {
		t.Errorf("the slice that has just come counts as %v, want 500; the other as %v, want 8", a, b)
	}
}

// What was reported once and isn't any more is a load of 0: the strategy doesn't go back to numbers.
func TestNoLoadIsALoad(t *testing.T) {
	l := newLoads(1)
	if _, ok := l.measured(); ok {
		t.Error("something is measured before anything is reported")
	}
	l.chunks[0] = []known{{ok: true}, {}}
	l.add(0)
	if mean, ok := l.measured(); mean != 0 || !ok {
		t.Errorf("%v, %t", mean, ok)
	}
}

// Space-Saving: no counter claims more for a key than was added, all that was added is counted, and a key with over an eighth is there.
func TestSketch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		var s sketch
		added, total := map[uint64]float64{}, 0.0
		for range 5000 {
			key := uint64(rng.ExpFloat64() * 5)
			n := rng.Float64()
			s.add(key, n)
			added[key], total = added[key]+n, total+n
		}
		sum := 0.0
		for _, c := range s.top() {
			sum += c.count
			if c.least() > added[c.hash]+1e-6 || c.count < added[c.hash]-1e-6 {
				t.Fatalf("key %d: between %v and %v, but it is %v", c.hash, c.least(), c.count, added[c.hash])
			}
		}
		if math.Abs(sum-total) > 1e-6 {
			t.Fatalf("counted %v of %v", sum, total)
		}
		for key, n := range added {
			there := false
			for _, c := range s.top() {
				there = there || c.hash == key
			}
			if n > total/sketchSize && !there {
				t.Fatalf("key %d has %v of %v, and isn't there", key, n, total)
			}
		}
	}
}

// A load that stops is forgotten, and one that starts is known after some heartbeats.
func TestMeterSmooths(t *testing.T) {
	var m meter
	now := clock.Instant(time.Hour)
	const beat = 5 * time.Second
	step := func(n float64) {
		m.add(7, n, true)
		now = now.Add(beat)
		m.measure(now, time.Second, 3*beat)
	}
	m.measure(now, time.Second, 3*beat)
	for range 10 {
		step(500)
	}
	if math.Abs(m.load-100) > 1 || m.hot[0].Hash != 7 || math.Abs(m.hot[0].Load-100) > 10 {
		t.Errorf("100 a second are measured as %v; %v", m.load, m.hot)
	}
	for range 15 {
		step(1e-9)
	}
	if m.load > 2 || m.hot[0].Load > 2 {
		t.Errorf("nothing any more is measured as %v; %v", m.load, m.hot)
	}
	if now = now.Add(time.Millisecond); !m.measure(now, time.Second, beat) || m.load > 2 {
		t.Errorf("too short an interval is measured: %v", m.load)
	}
}
