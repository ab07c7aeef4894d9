package shard

import "github.com/leasehold/leasehold/internal/shardmap"

// index has the sessions of a map by number, so that a round of the assigner doesn't look up the
// key of a session for each slice. It is of the goroutine that plans.
type index struct {
	ids    map[string]int32 // of sessions; that of "" is 0
	most   int              // of ids, until they are numbered again
	chunks []indexed

	state   []SliceState // the room of the last round, for the next one
	at      []place
	concern [][]int
}

// indexed is a chunk by numbers.
type indexed struct {
	of          *shardmap.Chunk
	owner, next []int32
	odd         bool // of a slice more than its owner is to be looked at: see number
}

func newIndex(chunks int) *index {
	return &index{ids: map[string]int32{"": 0}, most: 1024, chunks: make([]indexed, chunks)}
}

// id returns the number of a session.
func (x *index) id(session string) int32 {
	id, ok := x.ids[session]
	if !ok {
		id = int32(len(x.ids))
		x.ids[session] = id
	}
	return id
}

// follow brings the numbers in line with the map.
func (x *index) follow(chunks []*shardmap.Chunk) {
	if len(x.ids) > x.most { // most of them are of sessions that have ended
		x.ids = map[string]int32{"": 0}
		clear(x.chunks)
	}
	for i, c := range chunks {
		if x.chunks[i].of != c {
			x.chunks[i] = x.number(c)
		}
	}
	x.most = max(x.most, 2*len(x.ids))
}

func (x *index) number(c *shardmap.Chunk) indexed {
	n := indexed{of: c, owner: make([]int32, len(c.Slices)), next: make([]int32, len(c.Slices))}
	for j := range c.Slices {
		s := &c.Slices[j]
		n.owner[j], n.next[j] = x.id(s.Owner), x.id(s.Next)
		// It is to go somewhere, is asked for something, has ended an owner, or was quarantined.
		n.odd = n.odd || s.Next != "" || s.Ask != shardmap.AskNothing || s.Deaths != 0 || s.Until != 0
	}
	return n
}

// roll is what is known of sessions at one moment, by their numbers.
type roll struct {
	closed, asleep []bool
	worker         []int32 // index among the members, and 1; 0 for none of them
}

func (x *index) roll(p *picture) roll {
	for _, m := range p.members {
		x.id(m.Session)
	}
	r := roll{make([]bool, len(x.ids)), make([]bool, len(x.ids)), make([]int32, len(x.ids))}
	for session, closed := range p.closed {
		if id, ok := x.ids[session]; ok {
			r.closed[id] = closed
		}
	}
	for session, asleep := range p.asleep {
		if id, ok := x.ids[session]; ok {
			r.asleep[id] = asleep
		}
	}
	for i, m := range p.members {
		r.worker[x.ids[m.Session]] = int32(i + 1)
	}
	return r
}
