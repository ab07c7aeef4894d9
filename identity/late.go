package identity

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/lease"
)

// late reports whether the next window of a value begins too late for who wants to make ids of it. It is kept in mind.
func (c *claim) late(ctx context.Context, place int) (bool, error) {
	if !c.near {
		return false, nil
	}
	w, err := c.window(ctx, c.set.value(place))
	if err != nil || !w.Ceiling.After(c.m.Clock().Wall().Add(max(c.opts.Window, defaultWindow))) {
		return false, err
	}
	c.ahead[place] = w.Ceiling
	return true, nil
}

func (c *claim) isLate(place int) bool {
	_, late := c.ahead[place]
	return late
}

// unlessLate returns the lease of a value that was taken, or gives it back and returns nil.
func (c *claim) unlessLate(ctx context.Context, l *lease.Lease, place int) (*lease.Lease, error) {
	late, err := c.late(ctx, place)
	if err == nil && !late {
		return l, nil
	}
	return nil, errors.Join(err, l.Release(ctx))
}

// noneNear says when the first of the places can be used, which are all that are free.
func (c *claim) noneNear(places []int) error {
	first := slices.MinFunc(places, func(a, b int) int { return c.ahead[a].Compare(c.ahead[b]) })
	now := c.m.Clock().Wall()
	return &AheadError{Pool: c.name, Free: len(places), Value: c.set.value(first), Floor: c.ahead[first], In: c.ahead[first].Sub(now).Round(time.Millisecond)}
}
