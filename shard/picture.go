package shard

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/internal/shardmap"
)

// picture is what an assigner knows at one moment, and what it wants of the map.
type picture struct {
	space   shardmap.Space
	members []member // that may be asked: their sessions live
	chunks  []*shardmap.Chunk
	closed  map[string]bool
	asleep  map[string]bool
	wall    time.Time

	loads *loads
	ttl   time.Duration

	roll roll                    // of sessions by the numbers of loads.index
	next map[int]*shardmap.Chunk // chunks with changes, by index
	at   []place                 // of each slice of the state
}

type place struct{ chunk, slice int }

// picture copies what is known. a.mu is held.
func (a *assigner) picture() *picture {
	return &picture{
		space: a.space, members: slices.Clone(a.members), chunks: slices.Clone(a.chunks), closed: a.closed, asleep: a.asleep,
		wall: a.t.o.clk.Wall(), loads: a.loads, ttl: a.t.o.m.TTL(), next: map[int]*shardmap.Chunk{},
	}
}

// decide has the strategy plan, and changes the chunks as it wants.
func (p *picture) decide(strategy Strategy) {
	p.roll = p.loads.index.roll(p)
	p.bury()
	state := p.state()
	for _, m := range strategy.Plan(state) {
		if m.Slice < 0 || m.Slice >= len(p.at) || m.To >= len(p.members) {
			continue // a strategy may be anybody's
		}
		at := p.at[m.Slice]
		if m.Split != 0 || m.Merge {
			p.cut(at, m)
			continue
		}
		to, ready := "", true
		if m.To >= 0 {
			n := p.members[m.To]
			// One that hasn't heard of the chunk yet says itself when it follows it.
			_, follows := slices.BinarySearch(n.Chunks, at.chunk)
			to, ready = n.Session, follows && !n.Prepares
		}
		p.move(at, to, ready)
	}
	for i, c := range p.chunks {
		if !p.loads.index.chunks[i].odd {
			continue
		}
		for j, s := range c.Slices {
			if len(p.of(i).Slices) != len(c.Slices) {
				break // one thing at a time: the next round sees what became of it
			}
			if s.Next != "" && p.closed[s.Next] && p.of(i).Slices[j].Next == s.Next {
				p.edit(i).Propose(j, "", true) // the successor is gone
			}
			if s.Ask != shardmap.AskNothing {
				p.ask(i, j)
			}
		}
	}
}

// state returns what the strategy sees.
func (p *picture) state() *State {
	state := &State{Placement: p.space.Placement, Workers: make([]WorkerState, 0, len(p.members))}
	for _, m := range p.members {
		state.Workers = append(state.Workers, WorkerState{
			Name: m.Name, Address: m.Address, Zone: m.Zone, Labels: m.Labels, Capacity: m.Capacity, Goes: m.Goes() || p.asleep[m.Session],
		})
	}
	mean, measured := p.loads.measured()
	state.Measured, state.Grain = measured, p.loads.grain()/(2*p.ttl.Seconds())
	if p.space.Hashed {
		state.Floor = max(p.space.Slices, 1) * p.space.Chunks()
		state.Ceiling = 2 * state.Floor
	}
	x, n := p.loads.index, 0
	for _, c := range p.chunks {
		n += len(c.Slices)
	}
	all, at := slices.Grow(x.state[:0], n)[:n], slices.Grow(x.at[:0], n)[:n]
	n = 0
	for i, c := range p.chunks {
		of, numbers, ranges := p.of(i), &x.chunks[i], p.loads.chunks[i]
		special := numbers.odd || of != c
		for j, owner := range numbers.owner {
			// The ranges are from what is known of loads: all of c doesn't fit into a cache.
			k, e := &ranges[j], &all[n]
			*e = SliceState{From: k.from, To: k.to, Chunk: i, Owner: int(p.roll.worker[owner]) - 1, Next: int(p.roll.worker[numbers.next[j]]) - 1, Load: 1}
			switch {
			case owner != 0 && e.Owner < 0 && !p.roll.closed[owner], special && c.Slices[j].Ask == shardmap.AskRemove:
				continue // nobody but that session may give it away, or it is to go
			case e.Owner >= 0 && p.roll.asleep[owner]:
				continue // it may come back, and if not, it is closed soon
			}
			if special {
				if of.Slices[j].Quarantined(p.wall) {
					continue
				}
				e.Busy, e.Deaths = c.Slices[j].Ask != shardmap.AskNothing, c.Slices[j].Deaths
			}
			if e.Owner < 0 {
				e.Deaths = of.Slices[j].Deaths
				e.Next = -1 // there is no owner that could pass it on
			}
			if p.space.Placement.Pins != nil {
				e.ID = c.Slices[j].ID()
			}
			if measured {
				e.Load, e.Hot = k.of(mean)
			}
			at[n] = place{i, j}
			n++
		}
	}
	state.Slices, p.at = all[:n], at[:n]
	x.state, x.at = state.Slices, p.at
	return state
}

// of returns a chunk with the changes that are wanted so far.
func (p *picture) of(i int) *shardmap.Chunk {
	if c := p.next[i]; c != nil {
		return c
	}
	return p.chunks[i]
}

// edit returns a chunk to be changed.
func (p *picture) edit(i int) *shardmap.Chunk {
	c := p.next[i]
	if c == nil {
		changed := *p.chunks[i]
		changed.Slices = slices.Clone(changed.Slices)
		c = &changed
		p.next[i] = c
	}
	return c
}

// move has a slice go to a worker: at once where nobody owns it, or the session of its owner was
// closed, and else by its owner.
func (p *picture) move(at place, to string, ready bool) {
	s := p.of(at.chunk).Slices[at.slice]
	gone := func(session string) bool { return p.closed[session] }
	if s.Owner == "" || gone(s.Owner) {
		if to != "" {
			// No error but that of the last token, which the next round meets.
			_ = p.edit(at.chunk).Give(at.slice, "", to, gone, p.wall)
		}
		return
	}
	if s.Next != to && s.Owner != to {
		p.edit(at.chunk).Propose(at.slice, to, ready)
	}
}

// ask carries out what is asked of a slice that nobody owns, and brings two that are to merge to
// one owner.
func (p *picture) ask(i, j int) {
	c := p.of(i)
	s := c.Slices[j]
	gone := func(session string) bool { return p.closed[session] }
	switch {
	case s.Owner == "" || gone(s.Owner):
		_ = p.edit(i).Do(j, "", gone, p.wall) // what somebody else owns stays
	case s.Ask == shardmap.AskMerge && j+1 < len(c.Slices) && c.Slices[j+1].Owner != s.Owner:
		next := c.Slices[j+1]
		if next.Owner == "" || gone(next.Owner) {
			_ = p.edit(i).Give(j+1, "", s.Owner, gone, p.wall) // as above
			return
		}
		if next.Next != s.Owner {
			p.edit(i).Propose(j+1, s.Owner, true)
		}
	}
}

// changed returns the chunks with changes, in order.
func (p *picture) changed() []int {
	var all []int
	for i := range p.next {
		all = append(all, i)
	}
	slices.Sort(all)
	return all
}
