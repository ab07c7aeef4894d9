package shard

import (
	"time"

	"github.com/leasehold/leasehold/clock"
)

// pacer has an assigner begin moves in a few records of the map at a time. Every write of a record
// is pushed to all workers that own something in it. If all slices of a worker that leaves began to
// move at once, each would wait, without an owner, for the pushes of the others. In a record in
// which moves are under way no others begin: an owner that has stopped a slice would be refused by
// the assigner's write, and have to write again.
type pacer struct {
	began map[int]clock.Instant // when moves began in a chunk, as long as they are under way
	again clock.Instant         // when to look again at what was put off; 0 for nothing
}

// A move that takes longer than paceWithin of the TTL, since its worker prepares or drains, isn't
// waited for.
const paceWithin = 100

// Other moves of the same record wait patient times as long for it.
const patient = 10

// atOnce is in how many chunks moves begin at a time.
func atOnce(members int) int { return max(1, members/16) }

// moves reports whether a slice of chunk i is to go to another worker and has an owner that lives;
// whether the picture has begun such a move; and whether it gives a slice to another owner, as it
// does with those of the dead.
func (p *picture) moves(i int) (under, begins, gives bool) {
	old, next := p.chunks[i], p.of(i)
	same := len(old.Slices) == len(next.Slices)
	for j, s := range next.Slices {
		gives = gives || same && old.Slices[j].Owner != s.Owner
		if s.Next == "" || s.Owner == "" || p.closed[s.Owner] {
			continue
		}
		if same && old.Slices[j].Next == s.Next {
			under = true
		} else {
			begins = true
		}
	}
	return under, begins, gives
}

// putOff takes chunks out of what is to be written in which moves would begin while others are
// under way there, or in too many other chunks. What isn't graceful anyway isn't put off. Now is
// the time, and within how long a move counts as under way.
func (c *pacer) putOff(p *picture, now clock.Instant, within time.Duration) {
	c.again = 0
	busy := 0
	for i, began := range c.began {
		switch under, _, _ := p.moves(i); {
		case !under || now >= began.Add(patient*within):
			delete(c.began, i)
		case now < began.Add(within):
			busy++
		}
	}
	for _, i := range p.changed() {
		_, begins, gives := p.moves(i)
		if !begins {
			continue
		}
		_, going := c.began[i]
		if !gives && (going || busy >= atOnce(len(p.members))) {
			delete(p.next, i)
			c.again = now.Add(within)
			continue
		}
		if !going {
			busy++
		}
		c.began[i] = now
	}
}
