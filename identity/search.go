package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

const maxHolders = 8

// search is for when the index shows nothing that is free. It looks at all values, unless somebody
// does so now, or has done so lately. It returns a lease if a dead holder had it; nothing if the
// index is worth another try; or an *ExhaustedError.
func (c *claim) search(ctx context.Context) (*lease.Lease, int, error) {
	if c.pool.Full != nil && c.lately(c.pool.Full.At, c.m.TTL()/3) {
		return c.exhausted(ctx)
	}
	if c.lately(c.pool.Looking, c.m.TTL()) {
		return nil, 0, c.await(ctx)
	}
	before := c.rec.Version
	// Many may come at a time.
	if err := clock.Sleep(ctx, c.m.Clock(), jitter(c.m.TTL()/50)); err != nil {
		return nil, 0, err
	}
	if err := c.load(ctx); err != nil || c.rec.Version != before {
		return nil, 0, err
	}
	c.pool.Looking = c.m.Clock().Wall()
	rec, ok := put(ctx, c.st, c.rec, c.pool)
	if !ok {
		return nil, 0, c.load(ctx)
	}
	c.rec = rec
	v, err := c.look(ctx)
	if err != nil {
		c.ceased(ctx)
		return nil, 0, err
	}
	known := slices.Concat(v.free, v.late)
	found := pool{New: make([]byte, len(c.pool.New)), Free: known[:min(len(known), maxFree)]}
	for _, i := range v.unused {
		found.New[i/8] |= 1 << (i % 8)
	}
	var l *lease.Lease
	place := 0
	if len(v.unused)+len(v.free) == 0 {
		if l, place, err = c.reclaim(ctx, v, &found); err != nil {
			c.ceased(ctx)
			return nil, 0, err
		}
		if l == nil && len(v.late) > 0 {
			found.Full, found.Looking = nil, time.Time{}
			return nil, 0, errors.Join(c.publish(ctx, found), c.noneNear(v.late))
		}
	}
	if err := c.publish(ctx, found); err != nil && l == nil {
		return nil, 0, err
	}
	if l != nil {
		l, err = c.unlessLate(ctx, l, place)
		return l, place, err
	}
	if found.Full != nil && c.pool.Full != nil {
		return nil, 0, c.asError(found.Full.Expires)
	}
	return l, place, nil
}

// lately reports whether less than d has passed since t. A clock that is wrong costs another look.
func (c *claim) lately(t time.Time, d time.Duration) bool {
	age := c.m.Clock().Wall().Sub(t)
	return age > -d && age < d
}

// ceased lets others look at all values, since this look has come to no end.
func (c *claim) ceased(ctx context.Context) {
	limited, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.m.Clock(), c.m.TTL()/10)
	defer cancel()
	since := c.pool.Looking
	// Or they wait for a TTL.
	_ = store.Update(limited, c.st, c.rec.Key, func(rec *store.Record) (bool, error) {
		p, _, err := readPool(*rec)
		if err != nil || !p.Looking.Equal(since) {
			return false, err
		}
		p.Looking = time.Time{}
		rec.Data, err = json.Marshal(p)
		return err == nil, err
	})
}

// await blocks until somebody else has looked at all values, or should have.
func (c *claim) await(ctx context.Context) error {
	for since := c.pool.Looking; c.pool.Looking.Equal(since) && c.lately(since, c.m.TTL()); {
		limited, cancel := clock.WithTimeout(ctx, c.m.Clock(), c.m.TTL()/6)
		_, err := store.Wait(limited, c.m.Store(), c.rec.Key, c.rec.Version)
		late := limited.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !late:
			return err
		}
		if err := c.load(ctx); err != nil {
			return err
		}
	}
	return nil
}

// publish stores what a look showed, and what was released since it began.
func (c *claim) publish(ctx context.Context, found pool) error {
	known := slices.Concat(c.pool.Free, found.Free)
	return store.Update(ctx, c.st, c.rec.Key, func(rec *store.Record) (bool, error) {
		p, s, err := readPool(*rec)
		if err != nil || !s.Values.equal(c.set.Values) {
			return false, err // it was widened: the next try reads it
		}
		meanwhile := slices.DeleteFunc(p.Free, func(i int) bool { return slices.Contains(known, i) })
		p.New, p.Free, p.Full, p.Looking = found.New, found.Free, found.Full, time.Time{}
		for _, i := range meanwhile {
			p.add(i)
		}
		c.pool = p
		rec.Data, err = json.Marshal(p)
		return err == nil, err
	})
}

// exhausted looks at the hold that is to expire first, and no other.
func (c *claim) exhausted(ctx context.Context) (*lease.Lease, int, error) {
	i := c.pool.Full.Soonest
	if c.isLate(i) {
		return nil, 0, c.noneNear([]int{i})
	}
	l, err := c.acquire(ctx, i)
	if err == nil {
		l, err = c.unlessLate(ctx, l, i)
		return l, i, err
	}
	var held *lease.HeldError
	if errors.As(err, &held) {
		rest := c.pool.Full.Expires - c.m.Clock().Wall().Sub(c.pool.Full.At)
		return nil, 0, c.asError(min(max(rest, 0), held.ExpiresIn))
	}
	return l, i, err
}

func (c *claim) asError(expires time.Duration) error {
	f := c.pool.Full
	return &ExhaustedError{Pool: c.name, Size: c.set.size, Held: f.Held, Holders: f.Holders, ExpiresIn: expires}
}

// view is what a look at all values shows.
type view struct {
	unused, free []int            // free in the order in which they were released
	late         []int            // those of the free ones that are known to be
	kept         map[string][]int // by what keeps them: a session, or the lease itself
	owners       map[string]bool
	held         int
}

// look lists all values.
func (c *claim) look(ctx context.Context) (view, error) {
	v := view{kept: map[string][]int{}, owners: map[string]bool{}}
	stored := map[string]store.Record{}
	for rec, err := range c.m.Store().List(ctx, pools.Key(c.name, "")) {
		if err != nil {
			return view{}, err
		}
		stored[rec.Key] = store.Record{Owner: rec.Owner, Session: rec.Session, Acquired: released(rec)}
	}
	since := map[int]time.Time{}
	for i := range c.set.size {
		key := pools.Key(c.name, c.set.value(i))
		rec, ok := stored[key]
		since[i] = rec.Acquired
		switch {
		case !ok:
			v.unused = append(v.unused, i)
		case rec.Owner == "" && c.isLate(i):
			v.late = append(v.late, i)
		case rec.Owner == "":
			v.free = append(v.free, i)
		default:
			v.held++
			v.owners[rec.Owner] = true
			keeper := cmp.Or(rec.Session, key)
			v.kept[keeper] = append(v.kept[keeper], i)
		}
	}
	slices.SortStableFunc(v.free, func(a, b int) int { return since[a].Compare(since[b]) })
	return v, nil
}

// released returns when the last term of a free record ended, or that of another began.
func released(rec store.Record) time.Time {
	if rec.Owner == "" && len(rec.Past) > 0 {
		return rec.Past[0].Until
	}
	return rec.Acquired
}

// lookers is how many sessions are looked at side by side.
const lookers = 16

// reclaim looks at each session that keeps a value, and takes a value of one that is over. What
// else that kept is free, too. If none is over, found says so. One that can't be looked at keeps no
// other from being; it is an error if none is over. A store that fails again and again ends the
// look.
func (c *claim) reclaim(ctx context.Context, v view, found *pool) (l *lease.Lease, place int, err error) {
	f := &full{At: c.m.Clock().Wall(), Held: v.held, Expires: -1}
	keepers := slices.Collect(maps.Values(v.kept))
	var spare []*lease.Lease // one is enough
	var mu sync.Mutex        // never held over I/O
	var wg sync.WaitGroup
	for first := range min(lookers, len(keepers)) {
		wg.Go(func() {
			failed := 0
			for n := first; n < len(keepers) && failed < 2 && ctx.Err() == nil; n += lookers {
				places := keepers[n]
				got, failure := c.acquire(ctx, places[0])
				var held *lease.HeldError
				mu.Lock()
				switch {
				case errors.As(failure, &held):
					if f.Expires < 0 || held.ExpiresIn < f.Expires {
						f.Soonest, f.Expires = places[0], held.ExpiresIn
					}
				case failure != nil:
					err = failure
					failed++
				case l == nil:
					l, place = got, places[0]
					found.Free = append(found.Free, places[1:]...)
				default:
					spare = append(spare, got)
					found.Free = append(found.Free, places...)
				}
				over := l != nil
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, got := range spare {
		err = errors.Join(err, got.Release(ctx))
	}
	if l == nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	if l != nil {
		found.Free = found.Free[:min(len(found.Free), maxFree)]
		return l, place, nil // whatever failed beside it
	}
	for owner := range v.owners {
		if f.Holders = append(f.Holders, owner); len(f.Holders) == maxHolders {
			break
		}
	}
	found.Full = f
	return nil, 0, err
}
