package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// candidate is one Run.
type candidate struct {
	m    *lease.Manager
	clk  clock.Clock
	name string
	cb   Callbacks
	opts Options

	follows bool // the store's Waits are cheap: see [store.Properties]
	session *lease.Session

	mu      sync.Mutex
	now     outlook
	pauses  []heardPause  // that were heard of last
	heardOf int           // how many readings of the control record were taken note of
	changed chan struct{} // closed, and replaced, when one of those changes

	resting  atomic.Bool   // after a short term: see rest
	relist   chan struct{} // of capacity 1: what the list is to say of it has changed
	lastRest time.Duration // 0 after a term that was not short
}

// outlook is what is wanted of a candidate.
type outlook struct {
	ballot.Ballot                 // as last read
	ends          clock.Instant   // when the pause is over by itself
	known         bool            // it was read in this session
	eligible      bool            // as last asked
	changed       <-chan struct{} // closed when any of that may have changed
}

// heardPause is a pause as this candidate counts it.
type heardPause struct {
	ballot.Pause
	ends clock.Instant // when it is over by itself; Never when it isn't
}

// mayLead reports whether nothing speaks against it.
func (o outlook) mayLead() bool { return o.known && o.eligible && o.Pause == nil }

// stand is a candidate for as long as a session lives. An error says that the name is in use as
// another kind.
func (c *candidate) stand(ctx context.Context, s *lease.Session) (err error) {
	eligible := c.ask()
	c.set(func() { c.session, c.now = s, outlook{eligible: eligible} })
	inner, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(s.Context(), func() { cancel(context.Cause(s.Context())) })
	var wg sync.WaitGroup
	for _, f := range []func(context.Context){c.follow, c.attend, c.observe} {
		wg.Go(func() { f(inner) })
	}
	for inner.Err() == nil && err == nil {
		err = c.campaign(inner)
	}
	unlink()
	cancel(nil)
	wg.Wait()
	c.withdraw(ctx)
	return err
}

// withdraw takes the candidate off the list, and closes its session.
func (c *candidate) withdraw(ctx context.Context) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.clk, c.m.TTL()/3)
	defer cancel()
	// Otherwise the others take it off.
	_ = ballot.Update(ctx, c.m.Store(), c.name, func(b *ballot.Ballot) (bool, error) {
		i := b.Find(c.session.Key())
		if i >= 0 {
			b.Candidates = append(b.Candidates[:i:i], b.Candidates[i+1:]...)
		}
		return i >= 0, nil
	})
	_ = c.session.Close(ctx) // otherwise it expires
}

func (c *candidate) ask() bool {
	return !c.resting.Load() && (c.opts.Eligible == nil || c.opts.Eligible())
}

// look returns what is wanted of the candidate now.
func (c *candidate) look() outlook {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.now
	o.changed, o.Pause, o.ends = c.changed, nil, c.clk.Now()
	for i := range c.pauses {
		if p := &c.pauses[i]; p.ends > o.ends {
			o.Pause, o.ends = &p.Pause, p.ends
		}
	}
	return o
}

// set changes what look returns.
func (c *candidate) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// follow keeps the control record in sight.
func (c *candidate) follow(ctx context.Context) {
	version, known, told := "", false, ""
	for ctx.Err() == nil {
		rec, since, err := c.next(ctx, version, known)
		if err == nil {
			version = rec.Version
			known, err = c.heard(rec, since)
			if err == nil {
				told = ""
				continue
			}
			known = true // what can't be read is read again when it has changed
		}
		if ctx.Err() == nil {
			told = c.failed(err, told)
		}
		_ = clock.Sleep(ctx, c.clk, c.m.TTL()/30)
	}
}

// followedFor is for how many TTLs what a Wait has brought is relied on without a read, where Waits
// are cheap.
const followedFor = 4

// next reads the control record or, once one is known, waits for another than that of version. It
// blocks for a TTL at most, or four where the store notices by itself that a connection is dead,
// and reads again then: an answer, or news, may have been lost with the connection that was to
// bring it. since is for heard.
func (c *candidate) next(ctx context.Context, version string, known bool) (rec store.Record, since int, err error) {
	if known {
		since = c.readings()
		limit := c.m.TTL()
		if c.follows {
			limit *= followedFor
		}
		limited, cancel := clock.WithTimeout(ctx, c.clk, limit)
		rec, err := store.Wait(limited, c.m.Store(), ballot.Prefix+c.name, version)
		quiet := limited.Err() != nil
		cancel()
		if !quiet || err == nil || ctx.Err() != nil {
			return rec, since, err
		}
	}
	since = c.readings()
	limit := c.m.TTL() / 3
	limited, cancel := clock.WithTimeout(ctx, c.clk, limit)
	defer cancel()
	rec, err = store.Load(limited, c.m.Store(), ballot.Prefix+c.name)
	if err != nil && limited.Err() != nil {
		err = fmt.Errorf("%s: no answer for %v: %w", ballot.Prefix+c.name, limit, err)
	}
	return rec, since, err
}

// refresh reads the control record. It blocks until the store has answered or ctx is done.
func (c *candidate) refresh(ctx context.Context) error {
	for {
		since := c.readings()
		rec, err := store.Load(ctx, c.m.Store(), ballot.Prefix+c.name)
		if err != nil {
			return err
		}
		if noted, err := c.heard(rec, since); noted || err != nil {
			return err
		}
	}
}

// readings returns how many readings of the control record have been taken note of.
func (c *candidate) readings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heardOf
}

// heard takes note of the control record, which was asked for when there had been since readings.
// If there was one meanwhile, either may be the older: then it takes no note of this one, and the
// caller has to read again.
func (c *candidate) heard(rec store.Record, since int) (noted bool, err error) {
	b, err := ballot.Parse(rec)
	if err != nil {
		return false, err
	}
	c.set(func() {
		if noted = c.heardOf == since; !noted {
			return
		}
		var pauses []heardPause
		for _, p := range b.AllPauses() {
			heard := heardPause{p, 0}
			if i := slices.IndexFunc(c.pauses, func(h heardPause) bool { return h.Equal(p) }); i >= 0 {
				heard.ends = c.pauses[i].ends
			} else {
				heard.ends = c.endOf(p)
			}
			pauses = append(pauses, heard)
		}
		c.pauses = pauses
		c.now.Ballot, c.now.known = b, true
		c.heardOf++
	})
	return noted, nil
}

// endOf returns when a pause that is news is over by itself. A candidate that was there when it was
// set counts its length from now, so that no wall clock shortens it. One that has come later can't
// tell but by the time of day. c.mu is held.
func (c *candidate) endOf(p ballot.Pause) clock.Instant {
	if p.Until.IsZero() {
		return clock.NoDeadline
	}
	left := p.Until.Sub(p.Since)
	if !c.now.known {
		left = min(left, p.Until.Sub(c.clk.Wall()))
	}
	return c.clk.Now().Add(left)
}

// failed tells the program why the candidate doesn't hear what is wanted of it, when that is news,
// and returns what was told.
func (c *candidate) failed(err error, told string) string {
	news := err.Error()
	if c.cb.OnError != nil && news != told {
		c.cb.OnError(err)
	}
	return news
}

// patience is how long the candidate leaves a free name to those who are preferred to it: a
// thirtieth of the TTL for each, a tenth at most.
func (c *candidate) patience() time.Duration {
	ahead := c.opts.ahead(c.look().Ballot, c.session.Key())
	return time.Duration(min(ahead, 3)) * c.m.TTL() / 30
}

// sitOut blocks until what speaks against leading may have changed, or ctx is done.
func (c *candidate) sitOut(ctx context.Context, o outlook) {
	if o.Pause != nil && o.ends != clock.NoDeadline {
		limited, cancel := clock.WithTimeout(ctx, c.clk, o.ends.Sub(c.clk.Now()))
		defer cancel()
		ctx = limited
	}
	select {
	case <-o.changed:
	case <-ctx.Done():
	}
}

// campaign waits until the candidate may lead, and leads. An error says that the name is in use as
// another kind.
func (c *candidate) campaign(ctx context.Context) error {
	if o := c.look(); !o.mayLead() {
		c.sitOut(ctx, o)
		return nil
	}
	waiting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for waiting.Err() == nil {
			o := c.look()
			if !o.mayLead() {
				stop()
			}
			select {
			case <-o.changed:
			case <-waiting.Done():
			}
		}
	})
	l, err := c.session.Acquire(waiting, c.name, wanted.As(store.KindElection), wanted.Behind(c.patience))
	gaveUp := waiting.Err() != nil
	stop()
	wg.Wait()
	switch {
	case err == nil:
		c.lead(ctx, l)
	case errors.Is(err, store.ErrKind):
		return err
	case !gaveUp && c.session.Check() == nil:
		_ = clock.Sleep(ctx, c.clk, c.m.TTL()/30)
	}
	return nil
}
