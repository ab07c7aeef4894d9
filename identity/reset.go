package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Late is a value whose next window begins far ahead, because the clock of an earlier holder was
// ahead.
type Late struct {
	Value  string
	Name   string       // of the instance that had it last; "" for one without
	Token  fence.Token  // of the term to which its last window was granted
	Begins time.Time    // from when on its next holder may stamp
	Record store.Record // of the lease; the value is free if its owner is ""
}

// LateValues returns the values of a pool whose next windows begin after a time, in order. It reads
// all values that were ever held, and blocks until the store has answered or ctx is done. The error
// matches [ErrUndeclared] when there is no such pool.
func LateValues(ctx context.Context, st store.Store, pool string, after time.Time) ([]Late, error) {
	all, err := lateValues(ctx, st, pool, after)
	if err != nil {
		return nil, fmt.Errorf("list the values of %s that begin late: %w", pool, err)
	}
	return all, nil
}

func lateValues(ctx context.Context, st store.Store, pool string, after time.Time) (all []Late, err error) {
	if err := (Options{}).check(pool); err != nil {
		return nil, err
	}
	_, _, s, err := declared(ctx, st, pool, Values{})
	if err != nil {
		return nil, err
	}
	windows, err := windowsOf(ctx, st, pool)
	if err != nil {
		return nil, err
	}
	for i := range s.size {
		value := s.value(i)
		w := windows[windowKey(pool, value)]
		if !w.Ceiling.After(after) {
			continue
		}
		rec, err := store.Load(ctx, st, pools.Key(pool, value))
		if err != nil {
			return nil, err
		}
		all = append(all, Late{value, w.Name, w.Token, w.Ceiling, rec})
	}
	return all, nil
}

// windowsOf returns what is stored of the windows of a pool, by their keys.
func windowsOf(ctx context.Context, st store.Store, pool string) (map[string]window, error) {
	windows := map[string]window{}
	for rec, err := range st.List(ctx, windowKey(pool, "")) {
		if err != nil {
			return nil, err
		}
		if windows[rec.Key], err = readWindow(rec); err != nil {
			return nil, err
		}
	}
	return windows, nil
}

// Reset has the next window of a value begin now, by m's clock, instead of at v.Begins. It gives up
// what keeps ids apart. Ids that were made with the value may be dated up to v.Begins, and ids made
// from now on may be the same. The caller vouches that no such ids were kept, and that no process
// that had the value makes any.
//
// The value must be free, otherwise Reset returns a *[lease.HeldError]. A dead holder's value is
// free as for a [Claim]. An error that matches [ErrWindow] says that the value had another holder,
// or another window, since [LateValues] returned v. The TTL of m bounds how long the value stays
// held if Reset fails halfway. Reset blocks until the store has answered or ctx is done.
func Reset(ctx context.Context, m *lease.Manager, pool string, v Late) error {
	c := newClaim(m, m, pool, Options{})
	err := c.load(ctx)
	if err == nil {
		err = c.reset(ctx, v)
	}
	if err != nil {
		return fmt.Errorf("reset %s of %s: %w", v.Value, pool, err)
	}
	return nil
}

func (c *claim) reset(ctx context.Context, v Late) error {
	place, ok := c.set.place(v.Value)
	if !ok {
		return &OutsideError{Pool: c.name, Value: v.Value, Values: c.set.Values}
	}
	l, err := c.acquire(ctx, place)
	if err != nil {
		return err
	}
	now := c.m.Clock().Wall()
	key := windowKey(c.name, v.Value)
	err = changeWindow(ctx, c.st, key, func(w *window) (bool, error) {
		if w.Token == l.Token() { // an earlier try of this one landed
			return false, nil
		}
		if w.Token != v.Token || !w.Ceiling.Equal(v.Begins) {
			return false, fmt.Errorf("%s: %w, or its window has changed", key, ErrWindow)
		}
		*w = window{Format: format, Token: l.Token(), Name: w.Name, Floor: now, Ceiling: now}
		return now.Before(v.Begins), nil
	})
	if err = errors.Join(err, l.Release(ctx)); err == nil && !slices.Contains(c.pool.Free, place) {
		offer(ctx, c.st, c.m.Clock(), c.name, v.Value, offerPause)
	}
	return err
}
