package shard

import (
	"cmp"
	"slices"

	"github.com/leasehold/leasehold/internal/shardmap"
)

// A plan asks for so many splits and merges at most. A slice with less than coldShare of the mean
// is as good as idle. Above half of the room for more slices, neighbours merge that have less than
// the mean together; at the ceiling also those of two owners.
const (
	maxCuts   = 16
	coldShare = 0.02
)

// cut asks for splits where a worker has too much and nothing that could move, and for merges of
// cold neighbours.
func (l *leveller) cut() {
	if l.Ceiling == 0 {
		return
	}
	room, asked := l.Ceiling-len(l.Slices), 0
	for _, w := range l.stuck {
		for _, i := range l.largest(w) {
			if at := l.splitAt(&l.Slices[i]); at != 0 && room > 0 && asked < maxCuts {
				l.moves = append(l.moves, Move{Slice: i, To: -1, Split: at})
				l.moving[i] = true
				room--
				asked++
			}
		}
	}
	l.merge(asked)
}

// largest returns the slices of a worker that are worth a split: the two with the most load, unless
// that is less than the tolerance.
func (l *leveller) largest(w int) []int {
	all := slices.DeleteFunc(slices.Clone(l.of[w]), func(i int) bool {
		s := &l.Slices[i]
		return l.whole(s) || s.Load < l.margin[w]/2 || l.moving[i]
	})
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(l.Slices[b].Load, l.Slices[a].Load) })
	return all[:min(len(all), 2)]
}

// splitAt returns where a slice is to be split: so that a key with most of its load comes to be
// alone, or else in the middle. 0 is nowhere.
func (l *leveller) splitAt(s *SliceState) uint64 {
	var hot HotKey
	for _, h := range s.Hot {
		if h.Load > hot.Load && h.Hash >= s.From && h.Hash <= s.To {
			hot = h
		}
	}
	switch {
	case l.whole(s):
		return 0
	case hot.Load <= s.Load/2:
		return s.From + (s.To-s.From)/2 + 1
	case hot.Hash > s.From:
		return hot.Hash
	}
	return hot.Hash + 1
}

// merge asks for merges. One that brings two slices together that are one owner's moves no keys.
func (l *leveller) merge(asked int) {
	over := len(l.Slices) - l.Floor
	if over <= 0 || l.Floor == 0 {
		return
	}
	mean := l.total / float64(l.Floor)
	crowded, full := over > (l.Ceiling-l.Floor)/2, over >= l.Ceiling-l.Floor
	for i := 0; i+1 < len(l.Slices) && over > 0 && asked < maxCuts; i++ {
		a, b := l.Slices[i], l.Slices[i+1]
		if !l.quiet(i) || !l.quiet(i+1) || !neighbours(a, b) || a.Owner != b.Owner && !full {
			continue
		}
		cold := min(a.Load, b.Load) < coldShare*mean
		if a.Load+b.Load > mean*1.5 || !cold && (!crowded || a.Load+b.Load > mean) {
			continue
		}
		l.moves = append(l.moves, Move{Slice: i, To: -1, Merge: true})
		l.moving[i], l.moving[i+1] = true, true
		over--
		asked++
	}
}

// quiet reports whether slice i has an owner, and nothing is to become of it.
func (l *leveller) quiet(i int) bool {
	s := l.Slices[i]
	return s.Owner >= 0 && s.Next < 0 && !s.Busy && !l.moving[i]
}

// neighbours reports whether two slices may be one.
func neighbours(a, b SliceState) bool {
	return a.Chunk == b.Chunk && a.Deaths == b.Deaths && a.To+1 == b.From
}

// cut asks the owner of a slice to split it, or to merge it with the one after it.
func (p *picture) cut(at place, m Move) {
	c := p.of(at.chunk)
	s := c.Slices[at.slice]
	if s.Owner == "" || p.closed[s.Owner] || s.Next != "" || s.Ask != shardmap.AskNothing || len(c.Slices) >= maxChunk && !m.Merge {
		return
	}
	// What can't be asked for isn't: a strategy may be anybody's.
	if m.Merge {
		_ = p.edit(at.chunk).Request(at.slice, shardmap.AskMerge, 0)
		return
	}
	_ = p.edit(at.chunk).Request(at.slice, shardmap.AskSplit, m.Split)
}

// maxChunk bounds the slices of a record of the map, so that it has room.
const maxChunk = 400
