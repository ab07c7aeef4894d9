package election

import (
	"context"
	"iter"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Leader is what is known of an election's leader.
type Leader struct {
	Name  string
	Owner string      // owner id; "" when nobody leads
	Token fence.Token // of the term, or of the last one when nobody leads
	Since time.Time   // by the leader's wall clock; for people

	// Age is the time since the store reported this. The term may have ended meanwhile: only the
	// leader itself knows whether it leads at this instant.
	Age time.Duration
}

// observed is what one observer has seen of the lease of a name.
type observed struct {
	st   store.Store
	clk  clock.Clock
	name string
	obs  *lease.Observer
	last store.Record  // as it was read last, if it was
	at   clock.Instant // when that read began
	read bool

	// What Waits bring is relied on while the leader stays; at is not raised by it.
	follows bool
	session store.Record // that keeps the name, as it was heard of last
}

func newObserved(st store.Store, clk clock.Clock, name string) *observed {
	return &observed{st: st, clk: clk, name: name, obs: lease.NewObserver(st, lease.ObserverOptions{Clock: clk})}
}

// leader returns what is known, as of now.
func (o *observed) leader() Leader {
	s := o.obs.Known(o.name)
	l := Leader{Name: o.name, Token: s.Token, Age: max(o.clk.Now().Sub(o.at), 0)}
	if s.Standing == lease.NameHeld {
		l.Owner, l.Since = s.Holder, s.Since
	}
	return l
}

// look reads the record, and the session's. The time counts from before the reads.
func (o *observed) look(ctx context.Context) error {
	began := o.clk.Now()
	s, err := o.obs.Status(ctx, o.name)
	if err != nil {
		return err
	}
	o.last, o.at, o.read = s.Record, began, true
	if o.session.Key != o.last.Session {
		o.session = store.Record{Key: o.last.Session}
	}
	return nil
}

// Current returns the leader, by a read of the store. It shows an abandoned term as one that
// continues. To tell them apart takes the TTL, as [Watch] does.
func Current(ctx context.Context, st store.Store, name string) (Leader, error) {
	o := newObserved(st, clock.System(), name)
	if err := o.look(ctx); err != nil {
		return Leader{}, err
	}
	return o.leader(), nil
}

// WatchOptions of [Watch]. The zero value is ready for use.
type WatchOptions struct {
	// Clock measures time: [clock.System] by default.
	Clock clock.Clock
	// Poll bounds how long the end of a dead leader goes unnoticed beyond its TTL: 5 s by default.
	// A third of the TTL is a good value.
	Poll time.Duration
}

// Watch yields the leader whenever it changes. When the store can't be read, it yields an error,
// with the last known Leader and its age. When the store can be read again, it yields the leader,
// changed or not. The sequence ends when ctx is done.
func Watch(ctx context.Context, st store.Store, name string, o WatchOptions) iter.Seq2[Leader, error] {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Poll <= 0 {
		o.Poll = 5 * time.Second
	}
	return newObserved(st, o.Clock, name).leaders(ctx, o.Poll)
}

func (o *observed) leaders(ctx context.Context, poll time.Duration) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var told *Leader
		for {
			err := o.next(ctx, poll)
			if ctx.Err() != nil {
				return
			}
			l := o.leader()
			if err != nil || told == nil || told.Owner != l.Owner || told.Token != l.Token {
				if !yield(l, err) {
					return
				}
				told = &l
			}
			if err != nil {
				told = nil
				_ = clock.Sleep(ctx, o.clk, poll)
			}
		}
	}
}

// next reads at first, and then waits for a change, for poll at most, before it reads again: nobody
// knows how long ago what a wait returns was said. Who follows reads again only when the leader
// seems to have changed, or nobody seems to lead.
func (o *observed) next(ctx context.Context, poll time.Duration) error {
	if o.read {
		limited, cancel := clock.WithTimeout(ctx, o.clk, poll)
		before := o.leader()
		rec, err := o.change(limited)
		unchanged := limited.Err() != nil
		cancel()
		if ctx.Err() != nil || err != nil && !unchanged {
			return err
		}
		if o.follows && err == nil {
			o.heard(rec)
		}
		if now := o.leader(); o.follows && now.Owner != "" && now.Owner == before.Owner && now.Token == before.Token {
			return nil
		}
	}
	limited, cancel := clock.WithTimeout(ctx, o.clk, poll)
	defer cancel()
	return o.look(limited)
}

// change blocks until the record has another version; or, of who follows, that of the session.
func (o *observed) change(ctx context.Context) (store.Record, error) {
	if !o.follows {
		return store.Wait(ctx, o.st, o.name, o.last.Version)
	}
	return drive.Await(ctx, o.st, protocol.Action{Key: o.name, Version: o.last.Version, Also: o.session.Key, AlsoVersion: o.session.Version})
}

// heard takes note of the record of the name, or of the session that keeps it.
func (o *observed) heard(rec store.Record) {
	o.obs.Saw(rec)
	if rec.Key != o.name {
		o.session = rec
		return
	}
	o.last = rec
	if o.session.Key != rec.Session {
		o.session = store.Record{Key: rec.Session}
	}
}

// observe tells the candidate's program of new leaders.
func (c *candidate) observe(ctx context.Context) {
	if c.cb.OnNewLeader == nil {
		return
	}
	last := ""
	o := newObserved(c.m.Store(), c.clk, c.name)
	o.follows = c.follows
	for l, err := range o.leaders(ctx, c.m.TTL()/3) {
		if err == nil && l.Owner != "" && l.Owner != last {
			c.cb.OnNewLeader(l)
		}
		if err == nil {
			last = l.Owner
		}
	}
}
