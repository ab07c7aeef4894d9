package shardmap

import (
	"slices"

	"github.com/leasehold/leasehold/fence"
)

// Why says how a slice came to its owner.
type Why string

// How a slice came to its owner.
const (
	WhyGiven  Why = "given"     // nobody owned it
	WhyPassed Why = "passed on" // by its owner
	WhyFreed  Why = "freed"     // by its owner, to nobody
	WhyTaken  Why = "taken"     // the session of its owner was over
	WhySplit  Why = "split"
	WhyMerged Why = "merged"
)

// Past is a change of who owns a key, or of the range that it is in. Decisions don't depend on it.
type Past struct {
	Name     string      // as of the slice
	From, To uint64      // as of the slice
	Owner    string      // key of the session; "" for nobody
	Before   string      // the one before
	Token    fence.Token // that the change gave: the time in milliseconds, unless clocks differ
	Why      Why
}

// maxPast bounds the changes that a chunk remembers: about a kilobyte.
const maxPast = 16

type pastJSON struct {
	Name   string      `json:"n,omitempty"`
	From   uint64      `json:"f,omitempty"`
	To     uint64      `json:"l,omitempty"`
	Owner  int         `json:"o,omitempty"`
	Before int         `json:"b,omitempty"`
	Token  fence.Token `json:"k"`
	Why    Why         `json:"y"`
}

// note takes down that a slice is now as s says.
func (c *Chunk) note(s Slice, before string, why Why) {
	p := Past{Name: s.Name, From: s.From, To: s.To, Owner: s.Owner, Before: before, Token: s.Token, Why: why}
	if c.noted != c { // the room behind the changes is that of the chunk that c is a copy of
		c.Past, c.noted = slices.Clip(c.Past), c
	}
	c.Past = append(c.Past, p)
	if len(c.Past) > maxPast {
		c.Past = c.Past[len(c.Past)-maxPast:]
	}
}

// whyOf returns how a slice comes from its owner to another one.
func whyOf(s Slice, me, to string) Why {
	switch {
	case s.Owner == "":
		return WhyGiven
	case s.Owner != me:
		return WhyTaken
	case to == "":
		return WhyFreed
	}
	return WhyPassed
}

// parsePast reads what a chunk remembers. What can't be read is left out: no decision depends on
// it.
func (c *Chunk) parsePast(all []pastJSON, session func(int) string) {
	for _, j := range all {
		p := Past{Name: j.Name, From: j.From, To: j.To, Owner: session(j.Owner), Before: session(j.Before), Token: j.Token, Why: j.Why}
		if !c.Space.Hashed {
			p.From = Hash(p.Name)
			p.To = p.From
		}
		c.Past = append(c.Past, p)
	}
}

// writePast is the other way.
func (c *Chunk) writePast(number func(string) int) (all []pastJSON) {
	for _, p := range c.Past {
		j := pastJSON{Name: p.Name, Owner: number(p.Owner), Before: number(p.Before), Token: p.Token, Why: p.Why}
		if c.Space.Hashed {
			j.From, j.To = p.From, p.To
		}
		all = append(all, j)
	}
	return all
}
