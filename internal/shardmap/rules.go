package shardmap

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
)

// The rules: who may change which entry. An entry belongs to the session that owns it until that
// session passes it on, or is closed. Whoever else writes the chunk may only ask. Each change of
// who owns a key, and of the range that it is in, raises the token above every token of the chunk.

// ErrOwned is the error of a change that only the owner may make.
var ErrOwned = errors.New("slice is owned by another session")

// raise returns the next token of the chunk.
func (c *Chunk) raise(wall time.Time) (fence.Token, error) {
	t, err := protocol.NextToken(c.Token, wall)
	if err == nil {
		c.Token = t
	}
	return t, err
}

// mayTake returns an error unless the session me may change who owns s: its owner, or anybody once
// nobody owns it or the session of its owner was closed.
func mayTake(s Slice, me string, closed func(session string) bool) error {
	if s.Owner == "" || s.Owner == me || closed != nil && closed(s.Owner) {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", s.ID(), ErrOwned, s.Owner)
}

// Give makes to the owner of slice i, under a new token; "" frees it. me is the session that
// writes, "" for none. closed reports whether a session is known to be closed; it may be nil. A
// request to the old owner stays, unless to is the slice's Next or the owner takes the slice again.
func (c *Chunk) Give(i int, me, to string, closed func(string) bool, wall time.Time) error {
	s := &c.Slices[i]
	if err := mayTake(*s, me, closed); err != nil {
		return err
	}
	token, err := c.raise(wall)
	if err != nil {
		return err
	}
	if s.Owner == me && me != "" {
		s.Deaths = 0 // the owner lives
	}
	before, why := s.Owner, whyOf(*s, me, to)
	s.Owner, s.Token, s.Next, s.Ready, s.Until = to, token, "", false, 0
	c.note(*s, before, why)
	return nil
}

// Propose says to whom slice i is to go; "" lets it stay. ready says that the successor doesn't
// prepare. Anybody may.
func (c *Chunk) Propose(i int, next string, ready bool) {
	s := &c.Slices[i]
	if next == s.Owner {
		next = ""
	}
	if s.Next != next {
		s.Next, s.Ready = next, ready && next != ""
	}
}

// Request asks the owner of slice i for something; at is where a split is to be. Anybody may.
func (c *Chunk) Request(i int, ask Ask, at uint64) error {
	s := &c.Slices[i]
	switch {
	case ask == AskSplit && (!c.Space.Hashed || at <= s.From || at > s.To):
		return fmt.Errorf("split %s at %x: want a point inside a range", s.ID(), at)
	case ask == AskMerge && (!c.Space.Hashed || i+1 >= len(c.Slices)):
		return fmt.Errorf("merge %s: want a range that is followed by another one of its chunk", s.ID())
	case ask == AskRemove && c.Space.Hashed:
		return fmt.Errorf("remove %s: want a name", s.ID())
	}
	s.Ask, s.At = ask, at
	return nil
}

// Do carries out what slice i is asked for. A slice that was split, or merged, has the owner that
// it had before, under new tokens.
func (c *Chunk) Do(i int, me string, closed func(string) bool, wall time.Time) error {
	s := c.Slices[i]
	if err := mayTake(s, me, closed); err != nil {
		return err
	}
	switch s.Ask {
	case AskSplit:
		return c.split(i, s, wall)
	case AskMerge:
		return c.merge(i, me, closed, wall)
	case AskRemove:
		c.Slices = slices.Delete(c.Slices, i, i+1)
	}
	return nil
}

func (c *Chunk) split(i int, s Slice, wall time.Time) error {
	if s.At <= s.From || s.At > s.To { // it was split or merged meanwhile
		c.Slices[i].Ask, c.Slices[i].At = AskNothing, 0
		return nil
	}
	lower, err := c.raise(wall)
	if err != nil {
		return err
	}
	upper, err := c.raise(wall)
	if err != nil {
		return err
	}
	a := Slice{From: s.From, To: s.At - 1, Owner: s.Owner, Token: lower, Next: s.Next, Deaths: s.Deaths, Until: s.Until}
	b := Slice{From: s.At, To: s.To, Owner: s.Owner, Token: upper, Next: s.Next, Deaths: s.Deaths, Until: s.Until}
	c.Slices = slices.Insert(c.Slices, i+1, b)
	c.Slices[i] = a
	c.note(a, s.Owner, WhySplit)
	c.note(b, s.Owner, WhySplit)
	return nil
}

func (c *Chunk) merge(i int, me string, closed func(string) bool, wall time.Time) error {
	s := &c.Slices[i]
	if i+1 >= len(c.Slices) {
		s.Ask = AskNothing
		return nil
	}
	next := c.Slices[i+1]
	if err := mayTake(next, me, closed); err != nil {
		return err
	}
	token, err := c.raise(wall)
	if err != nil {
		return err
	}
	s.To, s.Token, s.Ask, s.At = next.To, token, AskNothing, 0
	s.Deaths, s.Until = max(s.Deaths, next.Deaths), max(s.Until, next.Until)
	c.note(*s, next.Owner, WhyMerged)
	c.Slices = slices.Delete(c.Slices, i+1, i+2)
	return nil
}

// Add adds names that aren't there, and withdraws the request to remove those that are. It reports
// whether it changed anything.
func (c *Chunk) Add(names ...string) bool {
	changed := false
	for _, n := range names {
		if i := c.Find(n, 0); i >= 0 {
			if c.Slices[i].Ask == AskRemove {
				c.Slices[i].Ask, changed = AskNothing, true
			}
			continue
		}
		at, _ := slices.BinarySearchFunc(c.Slices, n, func(s Slice, n string) int {
			if s.Name < n {
				return -1
			}
			return 1
		})
		h := Hash(n)
		c.Slices = slices.Insert(c.Slices, at, Slice{Name: n, From: h, To: h})
		changed = true
	}
	return changed
}
