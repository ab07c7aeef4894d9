package shardmap

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Copies of one chunk that are changed apart remember what became of each, and the chunk that they are copies of what became of it.
func TestCopiesRememberApart(t *testing.T) {
	c, err := ParseChunk(Space{Name: "s", Hashed: true, Slices: 64}, 0, store.Record{})
	if err != nil {
		t.Fatal(err)
	}
	give := func(c *Chunk, i int, to string) {
		if err := c.Give(i, "", to, nil, time.UnixMilli(1)); err != nil {
			t.Fatal(err)
		}
	}
	copied := func(c *Chunk) *Chunk {
		n := *c
		n.Slices = slices.Clone(c.Slices)
		return &n
	}
	for i := range 3 * maxPast {
		give(c, i, "first")
	}
	a, b := copied(c), copied(c)
	const next = 3 * maxPast
	give(a, next, "a")
	give(b, next, "b")
	give(c, next, "c")
	again := copied(a)
	give(again, next+1, "again")
	give(a, next+1, "a")
	for _, e := range []struct {
		c    *Chunk
		last []string
	}{{a, []string{"first", "a", "a"}}, {b, []string{"first", "first", "b"}}, {c, []string{"first", "first", "c"}}, {again, []string{"first", "a", "again"}}} {
		var got []string
		for _, p := range e.c.Past[len(e.c.Past)-3:] {
			got = append(got, p.Owner)
		}
		if !slices.Equal(got, e.last) || len(e.c.Past) != maxPast {
			t.Errorf("%d changes, the last of %v; want %d, %v", len(e.c.Past), got, maxPast, e.last)
		}
	}
}
