package shardmap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Deaths count while owners end soon after a slice has come to them, over what is stored, splits and merges; and no longer once an owner hands on.
func TestDeathsAreCounted(t *testing.T) {
	wall := time.Unix(1_800_000_000, 0)
	const within = time.Minute
	s := Space{Format: Format, Name: "s", Hashed: true, Slices: 1}
	c, err := ParseChunk(s, 0, store.Record{})
	if err != nil {
		t.Fatal(err)
	}
	closed := func(string) bool { return true }
	dies := func(after time.Duration) (quarantine bool) {
		t.Helper()
		if err := c.Give(0, "", "owner", closed, wall); err != nil {
			t.Fatal(err)
		}
		wall = wall.Add(after)
		if quarantine, err = c.Buried(0, closed, within, wall); err != nil {
			t.Fatal(err)
		}
		rec, err := c.Record("n") // it is kept in the record
		if err != nil {
			t.Fatal(err)
		}
		if c, err = ParseChunk(s, 0, rec); err != nil {
			t.Fatal(err)
		}
		return quarantine
	}
	for i, want := range []bool{false, false, true, true} {
		if got := dies(time.Second); got != want || c.Slices[0].Deaths != i+1 {
			t.Errorf("death %d: to be quarantined: %t, %d deaths", i+1, got, c.Slices[0].Deaths)
		}
	}
	for deaths, want := range map[int]time.Duration{3: time.Minute, 4: 2 * time.Minute, 6: 8 * time.Minute, 20: MaxQuarantine, 200: MaxQuarantine} {
		q := *c
		q.Slices = []Slice{{Deaths: deaths}}
		q.Quarantine(0, within, wall)
		if got := time.Unix(q.Slices[0].Until, 0).Sub(wall); got != want || !q.Slices[0].Quarantined(wall) || q.Slices[0].Quarantined(wall.Add(want)) {
			t.Errorf("after %d deaths a quarantine of %v, want %v", deaths, got, want)
		}
	}
	if dies(2*within) || c.Slices[0].Deaths != 0 {
		t.Errorf("an owner that lived long counts: %d", c.Slices[0].Deaths)
	}
	dies(time.Second)
	if err := c.Give(0, "", "owner", closed, wall); err != nil {
		t.Fatal(err)
	}
	if err := c.Request(0, AskSplit, 77); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(0, "owner", nil, wall); err != nil || c.Slices[0].Deaths != 1 || c.Slices[1].Deaths != 1 {
		t.Errorf("after a split: %+v, %v", c.Slices, err)
	}
	if err := c.Give(0, "owner", "heir", nil, wall); err != nil || c.Slices[0].Deaths != 0 {
		t.Errorf("after a hand-over: %+v, %v", c.Slices, err)
	}
	if _, err := c.Buried(0, nil, within, wall); err == nil {
		t.Error("a slice is taken from an owner whose session isn't closed")
	}
}

// A digest comes back as it was but for a thousandth, within its bounds, and any other text is none.
func TestDigest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var d Digest
		sum := 0.0
		for range rng.IntN(300) {
			s := SliceLoad{rng.Uint32(), math.Exp2(rng.Float64()*50 - 15)}
			d.Slices, sum = append(d.Slices, s), sum+s.Load
		}
		for range rng.IntN(40) {
			d.Hot = append(d.Hot, Hot{rng.Uint64(), rng.Float64() * 1e6})
		}
		n := len(d.Slices)
		text := d.Text()
		got, ok := ParseDigest(text)
		if !ok || len(text) > 1100 || len(got.Slices) != min(n, MaxDigestSlices) || len(got.Hot) != min(len(d.Hot), MaxDigestHot) {
			t.Fatalf("%d slices, %d keys: %t, %d bytes, %d slices, %d keys", n, len(d.Hot), ok, len(text), len(got.Slices), len(got.Hot))
		}
		total := got.Rest * float64(max(n-MaxDigestSlices, 0))
		for i, s := range got.Slices {
			total += s.Load
			if s.Tag != d.Slices[i].Tag || math.Abs(s.Load/d.Slices[i].Load-1) > 1e-3 {
				t.Fatalf("%+v came back as %+v", d.Slices[i], s)
			}
		}
		if sum > 0 && math.Abs(total/sum-1) > 1e-3 {
			t.Errorf("a load of %v came back as %v", sum, total)
		}
		if _, ok := ParseDigest(text[:len(text)/2]); ok {
			t.Error("half a digest is one")
		}
	}
	for _, load := range []float64{0, -1, math.NaN()} {
		if got := unpack(pack(load)); got != 0 {
			t.Errorf("%v came back as %v", load, got)
		}
	}
	for _, text := range []string{"", "x", "AAAA", "AQAAAA==", fmt.Sprint(make([]byte, 100))} {
		if d, ok := ParseDigest(text); ok {
			t.Errorf("%q is a digest: %+v", text, d)
		}
	}
}

func FuzzDigest(f *testing.F) {
	f.Add(Digest{Slices: []SliceLoad{{1, 2}}, Hot: []Hot{{3, 4}}, Rest: 5}.Text())
	f.Fuzz(func(t *testing.T, text string) {
		if d, ok := ParseDigest(text); ok {
			if again, ok := ParseDigest(d.Text()); !ok || len(again.Slices) != len(d.Slices) {
				t.Errorf("%+v came back as %+v", d, again)
			}
		}
	})
}
