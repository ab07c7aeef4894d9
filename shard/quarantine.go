package shard

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/internal/shardmap"
)

// A session that ends within suspect × TTL after it got a slice counts against the slice. The first
// quarantine takes as long. At most quarantinedShare of all slices are quarantined, or 4, and less
// than half of them: if more are suspected, it isn't the slices that end their owners.
const (
	suspect          = 4
	quarantinedShare = 0.01
	minQuarantined   = 4
)

// bury frees the slices of sessions that ended without having been closed by their own process, and
// quarantines those that have ended several owners in a row.
func (p *picture) bury() {
	gone := func(session string) bool { return p.closed[session] }
	within := suspect * p.ttl
	total, isolated := 0, 0
	var suspects []place
	for i, c := range p.chunks {
		total += len(c.Slices)
		numbers := &p.loads.index.chunks[i]
		for j, owner := range numbers.owner {
			if numbers.odd && c.Slices[j].Quarantined(p.wall) {
				isolated++
			}
			if !p.roll.closed[owner] {
				continue
			}
			if s := &c.Slices[j]; p.loads.left[s.Owner] || s.Ask != shardmap.AskNothing {
				continue
			}
			if dead, err := p.edit(i).Buried(j, gone, within, p.wall); err == nil && dead {
				suspects = append(suspects, place{i, j})
			}
		}
	}
	if n := isolated + len(suspects); n > max(int(quarantinedShare*float64(total)), minQuarantined) || 2*n >= total {
		return
	}
	for _, at := range suspects {
		p.edit(at.chunk).Quarantine(at.slice, within, p.wall)
	}
}

// tellQuarantines reports the slices of a chunk that was written that are quarantined from now on.
func (a *assigner) tellQuarantines(p *picture, i int) {
	for j, s := range p.next[i].Slices {
		if s.Quarantined(p.wall) && j < len(p.chunks[i].Slices) && s.Until != p.chunks[i].Slices[j].Until {
			a.t.o.report(fmt.Errorf("space %s, slice %s: its last %d owners ended soon after it had come to them: nobody gets it until %s: %w",
				p.space.Name, s.ID(), s.Deaths, time.Unix(s.Until, 0).UTC().Format(time.RFC3339), ErrQuarantined))
		}
	}
}
