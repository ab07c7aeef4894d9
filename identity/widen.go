package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// NarrowError reports that a pool would lose values, or that they would get other numbers. It
// matches [ErrMismatch].
type NarrowError struct {
	Pool          string
	Stored, Asked Values
	Why           string
}

func (e *NarrowError) Error() string {
	return fmt.Sprintf("its values are %s, and can't become %s: %s", e.Stored, e.Asked, e.Why)
}

// Is reports whether target is [ErrMismatch].
func (e *NarrowError) Is(target error) bool { return target == ErrMismatch }

// Widen adds values to a declared pool, and returns the new pool. The values have to be all that
// the pool has, and more: a range that covers the range, names that include all names, or a larger
// network that begins with the same one. Each value keeps its holder and its number, and new names
// come last. The same values are no error and no write.
//
// From then on, a caller that names the pool's values has to name the new ones. Widen blocks until
// the store has answered or ctx is done. The error matches [ErrUndeclared] if there is no such
// pool. It is a *[NarrowError] if values would be lost.
func Widen(ctx context.Context, st store.Store, name string, values Values) (Declared, error) {
	got, err := widen(ctx, st, name, values)
	if err != nil {
		return Declared{}, fmt.Errorf("widen the pool %s: %w", name, err)
	}
	return got, nil
}

func widen(ctx context.Context, st store.Store, name string, values Values) (got Declared, err error) {
	if err := (Options{}).check(name); err != nil {
		return got, err
	}
	asked, err := values.check()
	if err != nil {
		return got, err
	}
	err = store.Update(ctx, st, poolKey(name), func(rec *store.Record) (bool, error) {
		if rec.Version == "" {
			return false, ErrUndeclared
		}
		p, s, err := readPool(*rec)
		if err != nil {
			return false, err
		}
		wide, shift, why := s.widened(asked)
		if why != "" {
			return false, &NarrowError{Pool: name, Stored: s.Values, Asked: asked.Values, Why: why}
		}
		if why := p.beyond(&wide); why != "" {
			return false, &NarrowError{Pool: name, Stored: s.Values, Asked: asked.Values, Why: why}
		}
		got = Declared{Pool: name, Values: wide.Values, Size: wide.size, Layout: p.Layout}
		if wide.size == s.size {
			return false, nil
		}
		rec.Data, err = json.Marshal(p.widened(&wide, s.size, shift))
		return err == nil, err
	})
	return got, err
}

// widened returns a set of those values in which each value of s is shift places later; or why that
// can't be.
func (s *set) widened(o set) (wide set, shift int, why string) {
	const lacks = "it would lack values that it has; give all of them, and more"
	switch {
	case (s.Range != "") != (o.Range != "") || (s.Prefix != "") != (o.Prefix != ""):
		return o, 0, "ranges, names and prefixes don't become one another"
	case s.Range != "":
		if o.low > s.low || o.low+uint64(o.size) < s.low+uint64(s.size) {
			return o, 0, lacks
		}
		return o, int(s.low - o.low), ""
	case s.Prefix != "":
		switch {
		case o.Bits != s.Bits:
			return o, 0, fmt.Sprintf("the bits have to stay %d", s.Bits)
		case !covers(o.net, s.net):
			return o, 0, lacks
		case o.net.Addr() != s.net.Addr():
			return o, 0, fmt.Sprintf("it has to begin at %s, or the numbers of its values change", s.net.Addr())
		}
		return o, 0, ""
	}
	names := slices.Clone(s.Names)
	for _, name := range o.Names {
		if _, has := s.at[name]; !has {
			names = append(names, name)
		}
	}
	if len(names) > len(o.Names) {
		return o, 0, lacks
	}
	wide, err := Values{Names: names}.check()
	if err != nil {
		return o, 0, err.Error()
	}
	return wide, 0, ""
}

// covers reports whether all of small is in large.
func covers(large, small netip.Prefix) bool {
	return large.Bits() <= small.Bits() && large.Contains(small.Addr())
}

// widened returns the index of a wider set, in which the values that there were are shift places
// later.
func (p *pool) widened(wide *set, size, shift int) pool {
	next := newPool(wide)
	next.Layout = p.Layout
	for i := range size {
		if !p.isNew(i) {
			next.take(i + shift)
		}
	}
	for _, i := range p.Free {
		next.Free = append(next.Free, i+shift)
	}
	next.Last, next.Before, next.Looking = p.Last, p.Before, time.Time{}
	return next
}
