package identity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/store"
)

// layoutOf is the layout of the ids that are made with the values of a pool.
type layoutOf struct {
	pool   string
	layout flake.Layout
}

// check returns a *LayoutError if the pool is of another layout, or has numbers that the layout has
// no bits for.
func (l layoutOf) check(kept string, s *set) error {
	why := ""
	switch text := l.layout.String(); {
	case kept != "" && kept != text:
		why = fmt.Sprintf("its values are for ids of the layout %s, and ids of two layouts can be alike; give each layout a pool of its own", kept)
	case text != "":
		why = beyond(l.layout, s)
	}
	if why == "" {
		return nil
	}
	return &LayoutError{Pool: l.pool, Layout: l.layout.Name(), Why: why}
}

// keep has the pool's record say the layout, unless that says one already.
func (l layoutOf) keep(ctx context.Context, st store.Store) error {
	return store.Update(ctx, st, poolKey(l.pool), func(rec *store.Record) (bool, error) {
		if rec.Version == "" {
			return false, ErrUndeclared
		}
		p, s, err := readPool(*rec)
		if err == nil {
			err = l.check(p.Layout, &s)
		}
		if err != nil || p.Layout != "" {
			return false, err
		}
		p.Layout = l.layout.String()
		rec.Data, err = json.Marshal(p)
		return err == nil, err
	})
}

// beyond says why the numbers of a set don't fit into the ids of a layout, or nothing.
func beyond(l flake.Layout, s *set) string {
	if highest := s.low + uint64(s.size) - 1; highest >= l.Nodes() {
		return fmt.Sprintf("the number %d doesn't fit: the layout %s has %d bits of node, for 0 to %d", highest, l, l.Width(flake.Node), l.Nodes()-1)
	}
	return ""
}

// beyond says why a set isn't one for ids of the layout that the pool keeps, or nothing.
func (p *pool) beyond(s *set) string {
	if p.Layout == "" {
		return ""
	}
	l, err := flake.ParseLayout(p.Layout)
	if err != nil { // of a later version
		return err.Error()
	}
	return beyond(l, s)
}
