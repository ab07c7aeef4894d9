package shard

import (
	"context"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/internal/shardmap"
)

// leave tells the others that this worker goes, and reports whether nothing is left to hand over.
func (t *term) leave() bool {
	was, late := t.announced && t.free(), t.late()
	if !t.announced {
		_, err := t.enlist(t.ctx, func(own *shardmap.Member) {
			for _, i := range own.Chunks {
				t.keep(i)
			}
		})
		if err != nil {
			n := 0
			t.pause(&n, err)
			wake(t.told)
			return false
		}
	}
	if err := t.alone(t.ctx); err != nil {
		t.o.report(err) // it is looked at again
	}
	news := !t.announced || t.free() != was || late
	t.mu.Lock()
	if !t.announced {
		t.announced, t.asked = true, t.o.clk.Now()
	}
	keepers := slices.Collect(maps.Values(t.keepers))
	t.mu.Unlock()
	left := true
	for _, k := range keepers {
		if k.empty() {
			continue
		}
		left = false
		if news {
			wake(k.kick)
		}
	}
	return left
}

// alone looks whether there is another worker that could take over. If there is none, slices are
// freed without one.
func (t *term) alone(ctx context.Context) error {
	if now := t.o.clk.Now(); t.looked != 0 && now < t.looked.Add(t.o.m.TTL()/3) {
		return nil
	}
	t.looked = t.o.clk.Now()
	others := false
	for rec, err := range t.o.st.List(ctx, t.o.space.MemberPrefix()) {
		if err != nil {
			return err
		}
		if m, err := shardmap.ParseMember(rec); err == nil && m.Session != t.key && !m.Goes() {
			others = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freely = !others
	return nil
}

func (t *term) free() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.freely
}

// late reports whether the others have known for a TTL that this worker leaves. What they haven't
// asked for by then they have no room for, or a pin forbids it: it is freed.
func (t *term) late() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked != 0 && t.o.clk.Now() >= t.asked.Add(t.o.m.TTL())
}
