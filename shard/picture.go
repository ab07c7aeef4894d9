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

	next map[int]*shardmap.Chunk // chunks with changes, by index
	at   []place                 // of each slice of the state
}

type place struct{ chunk, slice int }

// picture copies what is known. a.mu is held.
func (a *assigner) picture() *picture {
	return &picture{
		space: a.space, members: slices.Clone(a.members), chunks: slices.Clone(a.chunks), closed: a.closed, asleep: a.asleep,
		wall: a.t.o.clk.Wall(), next: map[int]*shardmap.Chunk{},
	}
}

// decide has the strategy plan, and changes the chunks as it wants.
func (p *picture) decide(strategy Strategy) {
	state := p.state()
	for _, m := range strategy.Plan(state) {
		if m.Slice < 0 || m.Slice >= len(p.at) || m.To >= len(p.members) {
			continue // a strategy may be anybody's
		}
		to, ready := "", true
		if m.To >= 0 {
			to, ready = p.members[m.To].Session, !p.members[m.To].Prepares
		}
		p.move(p.at[m.Slice], to, ready)
	}
	for i, c := range p.chunks {
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
	number := make(map[string]int, len(p.members))
	state := &State{Placement: p.space.Placement}
	for i, m := range p.members {
		number[m.Session] = i + 1
		state.Workers = append(state.Workers, WorkerState{
			Name: m.Name, Address: m.Address, Zone: m.Zone, Labels: m.Labels, Capacity: m.Capacity, Goes: m.Goes() || p.asleep[m.Session],
		})
	}
	n := 0
	for _, c := range p.chunks {
		n += len(c.Slices)
	}
	state.Slices, p.at = make([]SliceState, 0, n), make([]place, 0, n)
	for i, c := range p.chunks {
		for j, s := range c.Slices {
			e := SliceState{Owner: number[s.Owner] - 1, Next: number[s.Next] - 1, Load: 1}
			switch {
			case s.Owner != "" && e.Owner < 0 && !p.closed[s.Owner], s.Ask == shardmap.AskRemove:
				continue // nobody but that session may give it away, or it is to go
			case e.Owner >= 0 && p.asleep[s.Owner]:
				continue // it may come back, and if not, it is closed soon
			}
			if e.Owner < 0 {
				e.Next = -1 // there is no owner that could pass it on
			}
			if p.space.Placement.Pins != nil {
				e.ID = s.ID()
			}
			state.Slices, p.at = append(state.Slices, e), append(p.at, place{i, j})
		}
	}
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

// concerns returns the chunks that each member has to look at.
func (p *picture) concerns() [][]int {
	number := make(map[string]int, len(p.members))
	for i, m := range p.members {
		number[m.Session] = i + 1
	}
	all := make([][]int, len(p.members))
	for i := range p.chunks {
		for _, s := range p.of(i).Slices {
			for _, session := range [...]string{s.Owner, s.Next} {
				if n := number[session]; n > 0 && session != "" {
					if of := all[n-1]; len(of) == 0 || of[len(of)-1] != i {
						all[n-1] = append(of, i)
					}
				}
			}
		}
	}
	return all
}
