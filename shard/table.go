package shard

import (
	"sort"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// table is a chunk of the map, to be looked up in. It is never changed.
type table struct {
	from    []uint64 // of entries, rising
	entries []entry
}

// entry is a slice of a table.
type entry struct {
	name    string
	to      uint64
	token   fence.Token
	session string
	address string
	mine    *Slice      // nil where another worker owns it
	wrong   *WrongOwner // what a check that fails returns
}

// newTable returns the table of a chunk. address returns where a session's worker is reached, and
// mine the slice of this process for an entry; it may be nil.
func newTable(c *shardmap.Chunk, address func(session string) string, mine func(shardmap.Slice) *Slice) *table {
	t := &table{from: make([]uint64, len(c.Slices)), entries: make([]entry, len(c.Slices))}
	order := make([]int, len(c.Slices))
	for i := range order {
		order[i] = i
	}
	if !c.Space.Hashed { // they are in the order of their names
		sort.Slice(order, func(a, b int) bool { return c.Slices[order[a]].From < c.Slices[order[b]].From })
	}
	wrong := map[string]*WrongOwner{"": errUnknownOwner}
	for n, i := range order {
		s := c.Slices[i]
		e := entry{name: s.Name, to: s.To, token: s.Token, session: s.Owner, address: address(s.Owner)}
		if mine != nil {
			e.mine = mine(s)
		}
		e.wrong = wrong[s.Owner]
		if e.wrong == nil || e.wrong.Token != s.Token && s.Owner != "" {
			e.wrong = &WrongOwner{Now: e.address, Session: s.Owner, Token: s.Token}
			wrong[s.Owner] = e.wrong
		}
		t.from[n], t.entries[n] = s.From, e
	}
	return t
}

// find returns the entry of a key, or nil. It may be called on a nil table.
func (t *table) find(key string, hash uint64, hashed bool) *entry {
	if t == nil {
		return nil
	}
	lo, hi := 0, len(t.from) // the last entry whose range begins at hash or before is at lo-1
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.from[mid] <= hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if hashed {
		if lo == 0 || hash > t.entries[lo-1].to {
			return nil
		}
		return &t.entries[lo-1]
	}
	for i := lo - 1; i >= 0 && t.from[i] == hash; i-- {
		if t.entries[i].name == key {
			return &t.entries[i]
		}
	}
	return nil
}
