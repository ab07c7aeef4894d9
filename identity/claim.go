package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Claim acquires a value of a pool, and the session keeps it from then on. Without a name it gets
// an unused value, or else the least recently released one. If all are held, it returns an
// *[ExhaustedError] at once.
//
// A name gets the value that it had last, if that is free. While another instance holds the value
// under the same name, Claim waits for it, until ctx is done ([Options.NoWait]). For instance, a
// process that was just killed holds its value until its TTL is over. If another instance has got
// the value, the name gets another one.
//
// Values with which ids can be made now come before others that are free. Claim passes over a value
// whose window begins later than [Options.Window] from now, and later than 2 min from now. A clock
// was ahead once, and no ids could be made with it until then. If only such values are free, Claim
// returns an *[AheadError]. A name gets its own value then.
//
// A claim tries candidates up to a fixed number: fewer, and in no order, where many processes
// claim. A claim that loses a race steps back before it tries again, longer each time. Only when no
// candidate is free are all values listed. The result goes into the index, too, and if nothing is
// free, all claims use it for a third of a TTL. The list also finds values of dead holders. Each
// dead session is closed before a value of it is taken, as for any lease.
//
// Claim blocks until the store has answered or ctx is done. A store that fails is an error. What
// may have been acquired is released in the background. The errors match [ErrMismatch] and
// [ErrUndeclared] when the pool differs from Options.
func Claim(ctx context.Context, s *lease.Session, pool string, o Options) (*Hold, error) {
	if s == nil {
		return nil, errors.New("claim: session is nil")
	}
	if err := o.check(pool); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	o.Window = cmp.Or(o.Window, min(max(s.Manager().TTL(), minWindow), maxWindow))
	c := newClaim(s, s.Manager(), pool, o)
	c.near = true
	h, err := c.hold(ctx, s)
	for errors.Is(err, errBound) { // another process of that name was first
		h, err = c.hold(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("claim a value of %s: %w", pool, err)
	}
	return h, nil
}

// taker is what takes the lease of a value: a session, or for an assignment the manager itself.
type taker interface {
	TryAcquire(ctx context.Context, key string, opts ...lease.AcquireOption) (*lease.Lease, error)
}

// claim is one call of Claim, or of Assign.
type claim struct {
	s    taker
	m    *lease.Manager
	st   store.Store // with bounded requests
	name string      // of the pool
	opts Options

	value    string // the only one that will do; "" for any
	hasty    bool   // what is held isn't waited for
	standing bool   // it is to be an assignment that no session keeps
	near     bool   // a value whose window begins late won't do

	rec   store.Record // the pool's
	pool  pool
	set   set
	taken []int // places that the index has for free, and that aren't
	raced bool  // others are about, or were faster, so it is better to draw than to go by the order

	ahead map[int]time.Time // places that are free, and when their windows begin, which is too late
}

// probes is how many candidates of each kind are tried before all values are looked at; inOrder,
// how many of the released ones are taken by their order, and slack, how many candidates that are
// taken are worth a write of the index.
const (
	probes  = 16
	inOrder = 8
	slack   = 3
)

func newClaim(s taker, m *lease.Manager, pool string, o Options) *claim {
	return &claim{s: s, m: m, st: patient{sessions.Bounded(m), m}, name: pool, opts: o, hasty: o.NoWait, ahead: map[int]time.Time{}}
}

// hold claims a value and its window, for the session.
func (c *claim) hold(ctx context.Context, s *lease.Session) (*Hold, error) {
	l, place, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	w, err := c.grant(ctx, place, l.Token(), false)
	if err != nil {
		return nil, errors.Join(err, l.Release(ctx))
	}
	return c.started(s, l, place, w)
}

// take takes the lease of a value, and writes down that the name has it.
func (c *claim) take(ctx context.Context) (l *lease.Lease, place int, err error) {
	if err := c.load(ctx); err != nil {
		return nil, 0, err
	}
	had, l, place, err := c.own(ctx)
	switch {
	case err != nil:
	case l == nil:
		l, place, err = c.draw(ctx)
	default:
		l, place, err = c.sooner(ctx, l, place)
	}
	if err != nil {
		return nil, 0, err
	}
	if value := c.set.value(place); had != value {
		if err := c.bind(ctx, had, value); err != nil {
			return nil, 0, errors.Join(err, l.Release(ctx))
		}
	}
	return l, place, nil
}

// grant stores the window of a value that was taken under that token.
func (c *claim) grant(ctx context.Context, place int, token fence.Token, standing bool) (window, error) {
	value := c.set.value(place)
	w := window{Token: token, Name: c.opts.Name, Standing: standing}
	w, before, err := grantWindow(ctx, c.st, windowKey(c.name, value), w, c.m.Clock().Wall(), c.opts.Window)
	if err != nil {
		return window{}, err
	}
	if before != "" && before != c.opts.Name {
		_ = c.unbind(ctx, before, value)
	}
	// Another one does, if others are about.
	if len(c.taken) >= slack && (!c.raced || rand.IntN(2) == 0) {
		c.pool.take(append(c.taken, place)...)
		_, _ = put(ctx, c.st, c.rec, c.pool)
	}
	return w, nil
}

func (c *claim) started(s *lease.Session, l *lease.Lease, place int, w window) (*Hold, error) {
	h := &Hold{
		l: l, st: c.st, clk: c.m.Clock(), ttl: c.m.TTL(), pool: c.name, value: c.set.value(place),
		number: c.set.low + uint64(place), length: c.opts.Window, floor: w.Floor,
		ask: make(chan struct{}, 1), done: make(chan struct{}), times: newTimeline(c.m.Clock()),
	}
	h.ceiling.Store(&w.Ceiling)
	ctx, stop := context.WithCancel(l.Context())
	h.stop = stop
	if !s.Background(func(life context.Context) {
		defer context.AfterFunc(life, stop)()
		h.keep(ctx)
	}) {
		stop()
		close(h.done)
		return nil, lease.ErrClosed
	}
	return h, nil
}

func (c *claim) load(ctx context.Context) error {
	before := c.set.Values
	var err error
	c.rec, c.pool, c.set, err = declare(ctx, c.m, c.st, c.name, c.opts)
	c.taken = nil
	if !before.equal(c.set.Values) {
		clear(c.ahead) // places in a pool that was widened meanwhile
	}
	return err
}

// draw takes the value that was asked for, or any.
func (c *claim) draw(ctx context.Context) (l *lease.Lease, place int, err error) {
	if c.value == "" {
		return c.any(ctx)
	}
	place, ok := c.set.place(c.value)
	if !ok {
		return nil, 0, &OutsideError{Pool: c.name, Value: c.value, Values: c.set.Values}
	}
	l, err = c.acquire(ctx, place)
	return l, place, err
}

// any takes a free value. Who loses a race for one steps back, for longer each time: many who race
// for few values would else write more often in vain than not. The index is read before that, so
// that those who come back look in different places.
func (c *claim) any(ctx context.Context) (l *lease.Lease, place int, err error) {
	for round := 0; ; round++ {
		c.raced = c.raced || c.lately(c.pool.Before, c.m.TTL()/50)
		late := len(c.ahead)
		l, place, err = c.unused(ctx)
		if l == nil && err == nil {
			l, place, err = c.released(ctx)
		}
		if l == nil && err == nil && len(c.ahead) == late {
			l, place, err = c.search(ctx)
		}
		if l != nil || err != nil && !errors.Is(err, errTaken) {
			return l, place, err
		}
		if err := c.load(ctx); err != nil {
			return nil, 0, err
		}
		if len(c.ahead) > late {
			continue
		}
		longest := min(c.m.TTL()/stepBack<<min(2*round, 16), c.m.TTL()/3)
		if err := clock.Sleep(ctx, c.m.Clock(), jitter(longest)); err != nil {
			return nil, 0, err
		}
	}
}

// stepBack is the part of the TTL that the first step back takes at most.
const stepBack = 250

// unused takes a value that was never held. All of them are equally long unused, so any of them
// will do, and those who come at the same time seldom want the same.
func (c *claim) unused(ctx context.Context) (*lease.Lease, int, error) {
	for _, i := range c.drawn(c.pool.unused(c.set.size)) {
		rec, err := c.read(ctx, i)
		if err != nil {
			return nil, 0, err
		}
		if rec.Version != "" {
			c.taken = append(c.taken, i)
			continue
		}
		l, err := c.try(ctx, i)
		return l, i, err
	}
	return nil, 0, nil
}

// released takes a value that was released: the first that is still free, or any if others are
// about.
func (c *claim) released(ctx context.Context) (*lease.Lease, int, error) {
	known := slices.DeleteFunc(slices.Clone(c.pool.Free), c.isLate)
	var order []int
	next, soonest := -1, time.Time{} // the best of those that ids can't be made with now
	if !c.raced {
		order = known[:min(inOrder, len(known))]
	}
	for _, i := range slices.Concat(order, c.drawn(known)) {
		if slices.Contains(c.taken, i) || c.isLate(i) {
			continue
		}
		free, err := c.free(ctx, i)
		if err != nil {
			return nil, 0, err
		}
		if !free {
			c.taken = append(c.taken, i)
			continue
		}
		begins, err := c.begins(ctx, i)
		switch {
		case err != nil:
			return nil, 0, err
		case c.isLate(i):
		case !begins.After(c.m.Clock().Wall().Add(soon)):
			l, err := c.try(ctx, i)
			return l, i, err
		case next < 0 || begins.Before(soonest):
			next, soonest = i, begins
		}
	}
	if next < 0 {
		return nil, 0, nil
	}
	l, err := c.try(ctx, next)
	return l, next, err
}

// free reports whether a value seems to be free: released, or kept by a session that is closed.
func (c *claim) free(ctx context.Context, i int) (bool, error) {
	rec, err := c.read(ctx, i)
	if err != nil || rec.Owner == "" || rec.Session == "" {
		return rec.Owner == "", err
	}
	session, err := store.Load(ctx, c.st, rec.Session)
	return session.Owner != rec.Owner, err
}

// acquire takes the lease of a value that was held before, as a rule: so it doesn't begin with the
// write for a new one.
func (c *claim) acquire(ctx context.Context, i int) (*lease.Lease, error) {
	rec, err := c.read(ctx, i)
	if err != nil {
		return nil, err
	}
	return c.s.TryAcquire(ctx, rec.Key)
}

// read reads the lease's record of a value.
func (c *claim) read(ctx context.Context, i int) (store.Record, error) {
	rec, err := store.Load(ctx, c.st, pools.Key(c.name, c.set.value(i)))
	if err == nil {
		c.m.Notice(rec)
	}
	return rec, err
}

// errTaken says that a candidate isn't free.
var errTaken = errors.New("the value is taken")

// try takes the lease of a value if it is free.
func (c *claim) try(ctx context.Context, i int) (*lease.Lease, error) {
	l, err := c.s.TryAcquire(ctx, pools.Key(c.name, c.set.value(i)))
	if errors.Is(err, lease.ErrHeld) {
		c.raced = true
		c.taken = append(c.taken, i)
		return nil, errTaken
	}
	return l, err
}

// drawn returns some of the places, in any order.
func (c *claim) drawn(places []int) []int {
	places = slices.Clone(places)
	n := min(probes, len(places))
	if c.raced { // the more look for a free value, the more of them find the same
		n = min(n, probes/4)
	}
	for i := range n {
		j := i + rand.IntN(len(places)-i)
		places[i], places[j] = places[j], places[i]
	}
	return places[:n]
}

// jitter returns a time of up to d.
func jitter(d time.Duration) time.Duration { return rand.N(max(d, 1)) }
