package election

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/store"
)

// attend keeps the candidate on the list, as it is now, asks whether it is eligible, and takes off
// those that are gone.
func (c *candidate) attend(ctx context.Context) {
	watch := sessions.NewWatch(c.m, c.m.Options().Sightings)
	if c.follows {
		var wg sync.WaitGroup
		wg.Go(func() { c.shadow(ctx, watch) })
		defer wg.Wait()
	}
	since, told := c.clk.Wall(), ""
	for ctx.Err() == nil {
		eligible := c.ask()
		if eligible != c.look().eligible {
			c.set(func() { c.now.eligible = eligible })
		}
		me := ballot.Candidate{
			Session: c.session.Key(), Name: c.opts.Name, Priority: c.opts.Priority, Zone: c.opts.Zone, Ineligible: !eligible, Since: since,
		}
		limited, cancel := clock.WithTimeout(ctx, c.clk, c.m.TTL()/3)
		switch err := c.list(limited, watch, me); { // again next time
		case errors.Is(err, ErrUnlisted):
			told = c.failed(err, told)
		case err == nil:
			told = ""
		}
		cancel()
		c.awaitRelist(ctx)
	}
}

// awaitRelist blocks for a third of the TTL, or until the list is to say something else of the
// candidate.
func (c *candidate) awaitRelist(ctx context.Context) {
	timer := clock.NewTimer(c.clk, c.m.TTL()/3)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.relist:
	case <-ctx.Done():
	}
}

// list puts me on the list, and takes off those whose sessions are over. Each candidate looks at
// the one before it on the list, the first at the last. Where it follows both the list and the one
// before it, it asks the store only if there is something to do. The error matches [ErrUnlisted]
// when the list is full.
func (c *candidate) list(ctx context.Context, watch *sessions.Watch, me ballot.Candidate) error {
	known := c.look()
	before := known.Around(me.Session)
	var over map[string]bool
	if !c.follows || len(before) > 0 && !watch.Renews(before[0]) {
		var err error
		if over, _, err = watch.Behind(ctx, before); err != nil {
			return err
		}
	}
	if c.follows && known.known && known.AsWanted(me, over) {
		return c.unlisted(known.Find(me.Session) >= 0)
	}
	listed := false
	err := ballot.Update(ctx, c.m.Store(), c.name, func(b *ballot.Ballot) (bool, error) {
		kept := make([]ballot.Candidate, 0, len(b.Candidates)+1)
		there := false
		for _, o := range b.Candidates {
			switch {
			case o.Session == me.Session:
				there = o.Ineligible == me.Ineligible
				kept = append(kept, me)
			case !over[o.Session]:
				kept = append(kept, o)
			}
		}
		if b.Find(me.Session) < 0 && len(kept) < ballot.MaxCandidates {
			kept = append(kept, me)
		}
		write := len(kept) != len(b.Candidates) || b.Find(me.Session) >= 0 && !there
		b.Candidates = kept
		listed = b.Find(me.Session) >= 0
		return write, nil
	})
	if err != nil {
		return err
	}
	return c.unlisted(listed)
}

// unlisted returns the error of a candidate that is not on the list because that is full.
func (c *candidate) unlisted(listed bool) error {
	if listed {
		return nil
	}
	return fmt.Errorf("%s: %w: %d are on it", c.name, ErrUnlisted, ballot.MaxCandidates)
}

// shadow follows the session of the candidate before this one on the list, and tells watch of its
// renewals.
func (c *candidate) shadow(ctx context.Context, watch *sessions.Watch) {
	last := store.Record{}
	for ctx.Err() == nil {
		o := c.look()
		if before := o.Around(c.session.Key()); len(before) == 0 {
			last = store.Record{}
		} else if before[0] != last.Key {
			last = store.Record{Key: before[0]}
		}
		rec, err := c.waitUntil(ctx, o.changed, last)
		switch {
		case err == nil:
			last = rec
			watch.Heard(rec)
		case ctx.Err() == nil && !closed(o.changed):
			_ = clock.Sleep(ctx, c.clk, c.m.TTL()/30)
		}
	}
}

// waitUntil is [store.Wait] for another version than last, or, without a key, for nothing, until
// changed is closed.
func (c *candidate) waitUntil(ctx context.Context, changed <-chan struct{}, last store.Record) (store.Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	})
	if last.Key == "" {
		<-ctx.Done()
		return store.Record{}, context.Cause(ctx)
	}
	return store.Wait(ctx, c.m.Store(), last.Key, last.Version)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
