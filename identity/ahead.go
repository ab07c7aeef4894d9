package identity

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold/lease"
)

// soon is how far from now a window may begin that ids can be made in now: flake's generators may
// be that much ahead of their clock.
const soon = time.Second

// begins returns when the next window of a value begins, the zero time for one that only has to be
// assigned. One that begins too late for who wants to make ids with the value is kept in mind.
func (c *claim) begins(ctx context.Context, place int) (time.Time, error) {
	if !c.near {
		return time.Time{}, nil
	}
	w, err := c.window(ctx, c.set.value(place))
	if err == nil && w.Ceiling.After(c.m.Clock().Wall().Add(max(c.opts.Window, defaultWindow))) {
		c.ahead[place] = w.Ceiling
	}
	return w.Ceiling, err
}

func (c *claim) isLate(place int) bool {
	_, late := c.ahead[place]
	return late
}

// unlessLate returns the lease of a value that was taken, or gives it back and returns nil.
func (c *claim) unlessLate(ctx context.Context, l *lease.Lease, place int) (*lease.Lease, error) {
	_, err := c.begins(ctx, place)
	if err == nil && !c.isLate(place) {
		return l, nil
	}
	return nil, errors.Join(err, l.Release(ctx))
}

// sooner returns the lease of the value that the name had, which was taken; or that of another one,
// if no ids can be made with the name's own for long, and with the other one they can.
func (c *claim) sooner(ctx context.Context, own *lease.Lease, place int) (*lease.Lease, int, error) {
	_, err := c.begins(ctx, place)
	if err == nil && !c.isLate(place) {
		return own, place, nil
	}
	var other *lease.Lease
	var at int
	if err == nil {
		other, at, err = c.any(ctx)
	}
	if errors.Is(err, ErrAhead) || errors.Is(err, ErrExhausted) {
		return own, place, nil
	}
	failed := own.Release(ctx)
	if err != nil {
		return nil, 0, errors.Join(err, failed)
	}
	return other, at, nil // the end of the session frees what was not released
}

// noneNear says when the first of the places can be used, which are all that are free.
func (c *claim) noneNear(places []int) error {
	first := slices.MinFunc(places, func(a, b int) int { return c.ahead[a].Compare(c.ahead[b]) })
	now := c.m.Clock().Wall()
	return &AheadError{Pool: c.name, Free: len(places), Value: c.set.value(first), Floor: c.ahead[first], In: c.ahead[first].Sub(now).Round(time.Millisecond)}
}
