package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// PruneOptions select the assignments that [Prune] ends.
type PruneOptions struct {
	// Live reports whether the instance of that name is still there.
	Live func(name string) bool
	// Idle is the least time since a value was last assigned, by the wall clocks, 0 or more. A new
	// instance may not be in the list of living ones yet. With 0, Prune doesn't look at that time.
	Idle time.Duration
	// DryRun makes Prune end nothing, and return what it would end.
	DryRun bool
	// By is the caller, for people: user@host.
	By string
	// Clock is where time comes from; [clock.System] by default.
	Clock clock.Clock
}

// Prune ends the assignments of a pool whose instances are gone, in the order of the values, and
// returns them. It leaves three kinds alone: values that a process or a session keeps, which end by
// themselves; assignments without a name; and those from within o.Idle. A name that comes back gets
// its value back if that is still free.
//
// What was released before an error is returned with it. Prune blocks until the store has answered
// or ctx is done.
func Prune(ctx context.Context, st store.Store, pool string, o PruneOptions) ([]Entry, error) {
	if o.Live == nil || o.Idle < 0 {
		return nil, fmt.Errorf("prune %s: options Live: %t, Idle: %v: want a function, and 0 or more", pool, o.Live != nil, o.Idle)
	}
	_, entries, err := List(ctx, st, pool)
	if err != nil {
		return nil, err
	}
	var gone []Entry
	for _, e := range entries {
		if !e.Assigned || e.Name == "" || o.Live(e.Name) || o.Idle > 0 && !e.assigned().Before(orSystem(o.Clock).Wall().Add(-o.Idle)) {
			continue
		}
		if !o.DryRun {
			_, err := Release(ctx, st, pool, ReleaseOptions{Value: e.Value, Token: e.Record.Token, Name: e.Name, By: o.By, Clock: o.Clock})
			if errors.Is(err, fence.ErrStale) {
				continue // somebody else has ended it
			}
			if err != nil {
				return gone, err
			}
		}
		gone = append(gone, e)
	}
	return gone, nil
}

// assigned is when a value was assigned last, at the latest: an Assign raises the ceiling to a
// window ahead of then, and each is a window of minWindow at least.
func (e Entry) assigned() time.Time {
	at := e.Ceiling.Add(-minWindow)
	if e.Record.Acquired.After(at) {
		return e.Record.Acquired
	}
	return at
}
