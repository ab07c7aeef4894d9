package shard

import (
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// Several workers that have something to write in one record of the map take turns. If all wrote at
// once, the store would refuse all but one, and all but one of the rest. None waits for long for
// another, which may be slow.
const (
	// An owner waits for those that go before it as long as the record changes at least every
	// TTL/patience, and no longer than TTL/longest.
	patience = 50
	longest  = 5

	// A successor waits as long for each that goes before it, since the record has changed last. It
	// waits for mostAhead at most.
	slotsOfTTL = 500
	mostAhead  = 16
)

// turn reports whether slice i, which has to be drained, is to be drained now. Of several owners in
// one record, the first goes first: else the others would have to write again while nobody owns
// their slices. All wait for the successors that aren't ready: their writes would refuse that of an
// owner, and the more slices are ready, the more go with one write. k.mu is held.
func (k *keeper) turn(c *shardmap.Chunk, i int) bool {
	id, first := termID(c.Slices[i]), true
	for j, e := range c.Slices {
		if e.Next != "" && e.Owner != "" {
			first = first && (e.Ready && (j >= i || e.Owner == k.t.key))
		}
	}
	if first || c.Slices[i].Next == "" {
		delete(k.turns, id)
		return true
	}
	now := k.t.o.clk.Now()
	last, waits := k.turns[id]
	if !waits {
		last = now.Add(k.t.o.m.TTL() / longest)
		k.turns[id] = last
	}
	due := min(last, k.since.Add(k.t.o.m.TTL()/patience))
	if now >= due {
		return true
	}
	k.lookAt(now, due)
	return false
}

// says reports whether this worker is to say now that it is ready for slice i. Where the store
// pushes, the first successor of a record says so first, and each of the others when it hears of
// the one before. k.mu is held.
func (k *keeper) says(c *shardmap.Chunk, i int, ready clock.Instant) bool {
	if k.hasty || k.t.news != nil {
		return true
	}
	ahead := 0
	for _, e := range c.Slices[:i] {
		if e.Next != "" && !e.Ready && e.Owner != "" && e.Next != k.t.key {
			ahead++
		}
	}
	now := k.t.o.clk.Now()
	due := max(k.since, ready).Add(k.t.o.m.TTL() / slotsOfTTL * time.Duration(min(ahead, mostAhead)))
	if now >= due {
		return true
	}
	k.lookAt(now, due)
	return false
}

// lookAt has the keeper look at what there is to do at an instant that is to come. k.mu is held.
func (k *keeper) lookAt(now, at clock.Instant) {
	if k.alarm > now && k.alarm <= at {
		return // it looks before that, and again then
	}
	k.alarm = at
	k.t.o.clk.AfterFunc(at.Sub(now), func() { wake(k.kick) })
}
