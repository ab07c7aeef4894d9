package shard

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// tell writes the members that are to look at chunks that they don't know of.
func (a *assigner) tell(ctx context.Context, p *picture) error {
	told := map[string][]int{} // by key
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range a.members {
			if chunks := told[a.members[i].key]; chunks != nil {
				a.members[i].Chunks = chunks
			}
		}
	}()
	concerns := p.concerns()
	for n, m := range p.members {
		if len(concerns[n]) == 0 || subset(concerns[n], m.Chunks) {
			continue
		}
		want := slices.Clone(concerns[n])
		err := store.Update(ctx, a.t.o.st, m.key, func(rec *store.Record) (bool, error) {
			if len(rec.Data) == 0 {
				return false, nil // it has left
			}
			stored, err := shardmap.ParseMember(*rec)
			if err != nil {
				return false, err
			}
			stored.Chunks = want
			*rec, err = stored.Record(*rec, rand.Text())
			return true, err
		})
		if err != nil {
			return err
		}
		told[m.key] = want
	}
	return nil
}

// subset reports whether all of some are in all; both are sorted.
func subset(some, all []int) bool {
	for _, i := range some {
		if _, ok := slices.BinarySearch(all, i); !ok {
			return false
		}
	}
	return true
}

// concerns returns the chunks that each member has to look at, in order. They are valid until the
// next call, of any picture of the assigner.
func (p *picture) concerns() [][]int {
	x := p.loads.index
	x.concern = slices.Grow(x.concern[:0], len(p.members))[:len(p.members)]
	all := x.concern
	for i := range all {
		all[i] = all[i][:0]
	}
	note := func(worker int32, chunk int) {
		if worker == 0 {
			return
		}
		if n := len(all[worker-1]); n == 0 || all[worker-1][n-1] != chunk {
			all[worker-1] = append(all[worker-1], chunk)
		}
	}
	for i := range p.chunks {
		if c := p.next[i]; c != nil {
			for j := range c.Slices {
				note(p.roll.worker[x.ids[c.Slices[j].Owner]], i)
				note(p.roll.worker[x.ids[c.Slices[j].Next]], i)
			}
			continue
		}
		numbers := &x.chunks[i]
		for _, owner := range numbers.owner {
			note(p.roll.worker[owner], i)
		}
		if !numbers.odd {
			continue
		}
		for _, next := range numbers.next {
			note(p.roll.worker[next], i)
		}
	}
	return all
}
