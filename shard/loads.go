package shard

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// loads is what an assigner knows of the load of slices, from the digests that heartbeats carry.
// What is known of a slice stays known while it moves, splits and merges, until its owner has
// measured it. It is of the goroutine that plans.
type loads struct {
	chunks  [][]known                   // by chunk, in the order of its slices
	sums    []sum                       // of each of chunks
	aligned []*shardmap.Chunk           // that chunks is of
	texts   map[string]string           // of each session's digest, as last taken
	fresh   map[string]*shardmap.Digest // that haven't been taken yet
	left    map[string]bool             // sessions that their own process has closed
	grains  map[string]grain            // of each session's reports
	index   *index                      // of the sessions of the map
}

// grain is the mean size of the reports of a session, weighted by their sizes, and their load.
type grain struct{ size, load float64 }

// sum is the load of the slices of a chunk of which it is known, and how many those are.
type sum struct {
	load float64
	n    int
}

// known is the load of one slice.
type known struct {
	from, to uint64
	load     float64
	ok       bool
	hot      []HotKey
}

func newLoads(chunks int) *loads {
	return &loads{
		chunks: make([][]known, chunks), sums: make([]sum, chunks), aligned: make([]*shardmap.Chunk, chunks),
		texts: map[string]string{}, fresh: map[string]*shardmap.Digest{}, left: map[string]bool{},
		grains: map[string]grain{}, index: newIndex(chunks),
	}
}

// hear takes what the record of a session carries.
func (l *loads) hear(rec store.Record) {
	if rec.Owner == "" {
		if len(rec.Past) > 0 && strings.HasPrefix(rec.Past[0].Why, protocol.WhyReleased) {
			l.left[rec.Key] = true
		}
		return
	}
	l.take(rec.Key, rec.Info[shardmap.Carried])
}

// take takes the digest of a session, unless that was taken before.
func (l *loads) take(session, text string) {
	if text == "" || text == l.texts[session] {
		return
	}
	if d, ok := shardmap.ParseDigest(text); ok {
		l.texts[session], l.fresh[session] = text, &d
		g := grain{size: d.Grain}
		for _, s := range d.Slices {
			g.load += s.Load
		}
		l.grains[session] = g
	}
}

// keep forgets sessions that the map and the members don't name any more.
func (l *loads) keep(named map[string]bool) {
	for session := range l.texts {
		if !named[session] {
			delete(l.texts, session)
			delete(l.fresh, session)
			delete(l.grains, session)
		}
	}
	for session := range l.left {
		if !named[session] {
			delete(l.left, session)
		}
	}
}

// measured is what a digest says of the slices of its session.
type measured struct {
	load map[uint32]float64 // by tag
	rest float64
}

// follow brings what is known in line with the map, and takes the digests that are new. settled is
// how long after a slice has come to an owner its digest is sure to have measured the slice.
func (l *loads) follow(chunks []*shardmap.Chunk, settled time.Duration, wall time.Time) {
	l.index.follow(chunks)
	for i, c := range chunks {
		if l.aligned[i] != c {
			l.chunks[i], l.aligned[i] = align(l.chunks[i], c), c
			l.add(i)
		}
	}
	if len(l.fresh) == 0 {
		return
	}
	fresh := make([]measured, len(l.index.ids))
	for session, d := range l.fresh {
		id, ok := l.index.ids[session]
		if !ok {
			continue // it owns nothing
		}
		m := measured{load: make(map[uint32]float64, len(d.Slices)), rest: d.Rest}
		for _, s := range d.Slices {
			m.load[s.Tag] = s.Load
		}
		fresh[id] = m
	}
	for i, c := range chunks {
		for j, owner := range l.index.chunks[i].owner {
			m := fresh[owner]
			if m.load == nil {
				continue
			}
			s := &c.Slices[j]
			load, ok := m.load[shardmap.Tag(s.From)]
			if !ok && m.rest > 0 && s.Held(wall) > settled {
				load, ok = m.rest, true
			}
			if ok {
				l.chunks[i][j] = known{from: s.From, to: s.To, load: load, ok: true}
			}
		}
		l.add(i)
	}
	for session, d := range l.fresh {
		for _, h := range d.Hot {
			c := chunks[chunks[0].Space.ChunkOf(h.Hash)]
			if j := c.Find("", h.Hash); j >= 0 && c.Slices[j].Owner == session {
				l.chunks[c.Index][j].hot = append(l.chunks[c.Index][j].hot, h)
			}
		}
	}
	clear(l.fresh)
}

// align returns what is known of the slices of a chunk by what was known of those before.
func align(was []known, c *shardmap.Chunk) []known {
	next := make([]known, len(c.Slices))
	if !c.Space.Hashed {
		byHash := make(map[uint64]known, len(was))
		for _, k := range was {
			byHash[k.from] = k
		}
		for j, s := range c.Slices {
			next[j] = byHash[s.From]
			next[j].from, next[j].to = s.From, s.To
		}
		return next
	}
	i := 0
	for j, s := range c.Slices {
		for i < len(was) && was[i].to < s.From {
			i++
		}
		next[j] = known{from: s.From, to: s.To}
		for n := i; n < len(was) && was[n].from <= s.To; n++ {
			next[j].take(was[n])
		}
	}
	return next
}

// take adds the part of another range's load that is in this one: its hot keys are where they are,
// and the rest is spread evenly.
func (k *known) take(of known) {
	if !of.ok {
		return
	}
	if of.from == k.from && of.to == k.to {
		*k = of
		return
	}
	k.ok = true
	rest := of.load
	for _, h := range of.hot {
		rest -= h.Load
		if h.Hash >= k.from && h.Hash <= k.to {
			k.load += h.Load
			k.hot = append(k.hot, h)
		}
	}
	from, to := max(k.from, of.from), min(k.to, of.to)
	k.load += max(rest, 0) * (float64(to-from) + 1) / (float64(of.to-of.from) + 1)
}

// add adds up what is known of a chunk.
func (l *loads) add(i int) {
	all := sum{}
	for j := range l.chunks[i] {
		if k := &l.chunks[i][j]; k.ok {
			all.load += k.load
			all.n++
		}
	}
	l.sums[i] = all
}

// measured returns the mean of the loads that are known, and whether workers report any.
func (l *loads) measured() (mean float64, ok bool) {
	n := 0
	for _, s := range l.sums {
		mean += s.load
		n += s.n
	}
	if n == 0 {
		return 0, false
	}
	return mean / float64(n), true
}

// grain returns the mean size of all reports, weighted by their sizes.
func (l *loads) grain() float64 {
	sum, load := 0.0, 0.0
	for _, g := range l.grains {
		sum += g.size * g.load
		load += g.load
	}
	if load <= 0 {
		return 0
	}
	return sum / load
}

// of returns the load of a slice, and its hot keys. A slice of which nothing is known counts as the
// mean, and an idle one as idleShare of it.
func (k *known) of(mean float64) (float64, []HotKey) {
	if !k.ok {
		return mean, nil
	}
	return max(k.load, idleShare*mean), k.hot
}

const idleShare = 0.01
