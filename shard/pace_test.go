package shard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// toAll wants every slice at worker 1, as for a worker 0 that leaves.
type toAll struct{}

func (toAll) Plan(s *State) (moves []Move) {
	for i, sl := range s.Slices {
		if sl.Owner != 1 && sl.Next < 0 {
			moves = append(moves, Move{Slice: i, To: 1})
		}
	}
	return moves
}

// Moves of 32 workers begin in two records at a time, and in the next ones when those have ended, or take long; what nobody owns goes at once.
func TestMovesBeginInAFewRecordsAtATime(t *testing.T) {
	space := shardmap.Space{Format: shardmap.Format, Name: "s", Hashed: true, Bits: 3, Slices: 2}
	members := []member{
		{Member: shardmap.Member{Session: ".session/a/1", Capacity: 1}},
		{Member: shardmap.Member{Session: ".session/b/1", Capacity: 1, Chunks: []int{0, 1, 2, 3, 4, 5, 6, 7}}},
	}
	for len(members) < 32 {
		members = append(members, member{Member: shardmap.Member{Session: fmt.Sprintf(".session/%d/1", len(members)), Capacity: 1}})
	}
	var chunks []*shardmap.Chunk
	for i := range space.Chunks() {
		c, err := shardmap.ParseChunk(space, i, (written{}).record())
		if err != nil {
			t.Fatal(err)
		}
		for j := range c.Slices {
			if i == 7 {
				continue // nobody's
			}
			if err := c.Give(j, "", members[0].Session, nil, modelWall); err != nil {
				t.Fatal(err)
			}
		}
		chunks = append(chunks, c)
	}
	c, closed := pacer{began: map[int]clock.Instant{}}, map[string]bool{}
	round := func(now clock.Instant) []int {
		p := &picture{space: space, members: members, chunks: chunks, closed: closed, wall: modelWall, next: map[int]*shardmap.Chunk{}, loads: newLoads(len(chunks))}
		p.loads.follow(p.chunks, p.ttl, p.wall)
		p.decide(toAll{})
		c.putOff(p, now, 100)
		changed := p.changed()
		for _, i := range changed {
			chunks[i] = p.next[i]
		}
		return changed
	}
	// done has the owner pass on what is to go.
	done := func(i int) {
		for j, s := range chunks[i].Slices {
			if err := chunks[i].Give(j, s.Owner, s.Next, nil, modelWall); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(what string, now clock.Instant, want ...int) {
		t.Helper()
		if got := round(now); !slices.Equal(got, want) {
			t.Errorf("%s: %v are written; want %v", what, got, want)
		}
	}
	want("at first", 1, 0, 1, 7)
	want("while they move", 2)
	if c.again != 102 {
		t.Errorf("it looks again at %d", c.again)
	}
	done(0)
	want("when one has moved", 3, 2)
	want("when the others take long", 200, 3, 4)
	done(3)
	done(4)
	want("when those have moved", 201, 5, 6)
	if c.again != 0 {
		t.Errorf("nothing is put off, and it looks again at %d", c.again)
	}
	// Two records have slices of somebody who is dead, beside those that may wait.
	for _, i := range []int{0, 1, 2, 3} {
		for j, s := range chunks[i].Slices {
			owner := members[0].Session
			if i > 1 && j == 0 {
				owner = members[2].Session
			}
			if err := chunks[i].Give(j, s.Owner, owner, nil, modelWall); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed[members[2].Session] = true
	want("when one has died", 400, 0, 1, 2, 3)
}

// While a slice of a record moves, no other move begins there, so that the assigner's write doesn't refuse the owner's; but what has no
// owner is given out at once.
func TestNoMoveBeginsBesideAnother(t *testing.T) {
	a, b := modelSessions[0], modelSessions[1]
	members := []member{{Member: shardmap.Member{Session: a, Capacity: 1}}, {Member: shardmap.Member{Session: b, Capacity: 1, Chunks: []int{0}}}}
	c := (written{}).chunk()
	for j := range c.Slices {
		if err := c.Give(j, "", a, nil, modelWall); err != nil {
			t.Fatal(err)
		}
	}
	p := pacer{began: map[int]clock.Instant{}}
	round := func(now clock.Instant, slice int, closed map[string]bool) bool {
		pic := &picture{space: modelSpace, members: members, chunks: []*shardmap.Chunk{c}, closed: closed, wall: modelWall, next: map[int]*shardmap.Chunk{}, loads: newLoads(1)}
		pic.loads.follow(pic.chunks, pic.ttl, pic.wall)
		pic.decide(one{Slice: slice, To: 1})
		p.putOff(pic, now, 100)
		written := pic.next[0] != nil
		c = pic.of(0)
		return written
	}
	if !round(1, 0, nil) {
		t.Fatal("the first move doesn't begin")
	}
	if round(2, 1, nil) || p.again != 102 {
		t.Errorf("a move begins while another one is under way; it looks again at %d", p.again)
	}
	if round(1000, 1, nil) {
		t.Error("a move begins while another one is under way for long")
	}
	if !round(1001, 1, nil) {
		t.Error("a move waits for one that takes very long")
	}
	c.Propose(1, "", true)
	if err := c.Give(0, a, b, nil, modelWall); err != nil {
		t.Fatal(err)
	}
	if !round(1002, 1, nil) {
		t.Error("a move waits for one that has ended")
	}
}

// A worker that hasn't heard of a record yet says itself that slices of it may come.
func TestASuccessorThatDoesNotFollow(t *testing.T) {
	for _, follows := range []bool{false, true} {
		members := []member{{Member: shardmap.Member{Session: ".session/a/1"}}, {Member: shardmap.Member{Session: ".session/b/1"}}}
		if follows {
			members[1].Chunks = []int{0}
		}
		c := (written{}).chunk()
		for j := range c.Slices {
			if err := c.Give(j, "", members[0].Session, nil, modelWall); err != nil {
				t.Fatal(err)
			}
		}
		p := &picture{space: modelSpace, members: members, chunks: []*shardmap.Chunk{c}, closed: map[string]bool{}, wall: modelWall, next: map[int]*shardmap.Chunk{}, loads: newLoads(1)}
		p.loads.follow(p.chunks, p.ttl, p.wall)
		p.decide(toAll{})
		for _, s := range p.of(0).Slices {
			if s.Next != members[1].Session || s.Ready != follows {
				t.Errorf("follows %t: to %q, ready %t", follows, s.Next, s.Ready)
			}
		}
	}
}

// Of two owners in one record, the first passes its slice on first; the other one waits for it, but not for long.
func TestOwnersTakeTurns(t *testing.T) {
	m := newModel(t)
	s := m.begin(modelScope{})
	a, b := m.keeper(s, 0), m.keeper(s, 1)
	c := (written{}).chunk()
	for i, owner := range modelSessions[:2] {
		if err := c.Give(i, "", owner, nil, modelWall); err != nil {
			t.Fatal(err)
		}
		c.Propose(i, modelSessions[1-i], true)
	}
	if !a.turn(c, 0) || b.turn(c, 1) || b.turn(c, 1) {
		t.Error("the first doesn't go first")
	}
	b.turns[termID(c.Slices[1])] = 0 // it has waited
	if !b.turn(c, 1) {
		t.Error("the second waits for ever")
	}
	c.Propose(0, "", false)
	if !b.turn(c, 1) || len(b.turns) > 0 {
		t.Errorf("the second waits for nobody, %v", b.turns)
	}
}

// An owner waits for the successors of a record that aren't ready, but not for long: their writes would refuse its own.
func TestOwnersWaitForSuccessors(t *testing.T) {
	m := newModel(t)
	a := m.keeper(m.begin(modelScope{}), 0)
	c := (written{}).chunk()
	for i := range 2 {
		if err := c.Give(i, "", modelSessions[0], nil, modelWall); err != nil {
			t.Fatal(err)
		}
		c.Propose(i, modelSessions[1], i == 0)
	}
	if a.turn(c, 0) {
		t.Error("it doesn't wait")
	}
	a.turns[termID(c.Slices[0])] = 0 // it has waited
	if !a.turn(c, 0) {
		t.Error("it waits for ever")
	}
	c.Slices[1].Ready = true
	if !a.turn(c, 0) || !a.turn(c, 1) {
		t.Error("it waits for nobody")
	}
}

// Of two successors in one record, the first says first that it is ready; the other one waits for it, but not for long.
func TestSuccessorsTakeTurns(t *testing.T) {
	m := newModel(t)
	s := m.begin(modelScope{})
	a, b := m.keeper(s, 0), m.keeper(s, 1)
	a.hasty, b.hasty = false, false
	c := (written{}).chunk()
	for i := range 2 {
		if err := c.Give(i, "", modelSessions[2], nil, modelWall); err != nil {
			t.Fatal(err)
		}
		c.Propose(i, modelSessions[i], false)
	}
	now := b.t.o.clk.Now()
	if !a.says(c, 0, now) || b.says(c, 1, now) {
		t.Error("the first doesn't say so first")
	}
	slot := a.t.o.m.TTL() / slotsOfTTL
	b.since = now.Add(-slot)
	if !b.says(c, 1, now.Add(-slot)) {
		t.Error("the second waits for ever")
	}
	b.since = now
	if b.says(c, 1, now.Add(-slot)) {
		t.Error("the second doesn't wait for another one after a change")
	}
	c.Slices[0].Ready = true
	if !b.says(c, 1, now) {
		t.Error("the second waits for nobody")
	}
}
