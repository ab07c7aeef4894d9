package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// A session's renewals say nothing of the records of its leases, and an outsider may delete, edit
// or restore one: kubectl, etcdctl, another program that shares the record. So a session looks at
// them, and ends the terms that the store knows nothing of any more. A look begins TTL/4 after the
// one before, or when that ends: if it ends within TTL/12, what was done is noticed TTL/3 later at
// the latest.
const looksPerTTL = 4

// looker is what a session looks at its leases with. It is used by one goroutine.
type looker struct {
	s       *Session
	touches bool                     // other programs share the records
	touched map[*Lease]*store.Record // as last seen
	looks   drive.Looks[*Lease]

	pushes    bool // the store does
	pushed    chan struct{}
	following map[*Lease]struct{}
	followAt  clock.Instant
	followers sync.WaitGroup
}

// run looks as long as ctx lasts, which ends with the session.
func (k *looker) run(ctx context.Context) {
	m := k.s.hold.m
	every := m.timing.TTL / looksPerTTL
	defer k.followers.Wait()
	for due := m.clk.Now().Add(every); ; {
		why := k.rest(ctx, due)
		if ctx.Err() != nil {
			return
		}
		start := m.clk.Now()
		switch why {
		case waitFollow:
			k.follow(ctx)
			continue
		case waitEnlisted:
			if k.touchFresh(ctx) != nil {
				due = min(due, m.clk.Now().Add(m.timing.Attempt))
			}
			continue
		case waitDue, waitPushed:
		}
		err := k.look(ctx)
		now := m.clk.Now()
		due = max(start.Add(every), now)
		if err != nil { // the store doesn't answer: as soon as it does
			due = min(due, now.Add(m.timing.Attempt))
		}
		if first := k.earliest(); first > now {
			due = min(due, first)
		}
	}
}

// rest blocks until a look is due, or there is something else to do.
func (k *looker) rest(ctx context.Context, due clock.Instant) wait {
	clk := k.s.hold.m.clk
	timer := clock.NewTimer(clk, min(due, k.followAt).Sub(clk.Now()))
	defer timer.Stop()
	select {
	case <-k.s.enlisted:
		if k.pushes {
			k.followAt = min(k.followAt, clk.Now().Add(k.s.hold.m.timing.Attempt))
		}
		return waitEnlisted
	case <-k.pushed:
		return waitPushed
	case <-timer.C:
		if k.followAt <= clk.Now() {
			return waitFollow
		}
	case <-ctx.Done():
	}
	return waitDue
}

// touchFresh touches the leases that were never touched.
func (k *looker) touchFresh(ctx context.Context) error {
	if !k.touches {
		return nil
	}
	fresh, _ := k.choose(k.s.roster.Members(), true)
	return k.try(ctx, fresh, nil)
}

// look ends the leases that are the session's no more by their records.
func (k *looker) look(ctx context.Context) error {
	leases := k.s.roster.Members()
	if !k.touches {
		return k.try(ctx, nil, leases)
	}
	touch, others := k.choose(leases, false)
	return k.try(ctx, touch, others)
}

// try touches some leases and looks at others, for as long as a look may take.
func (k *looker) try(ctx context.Context, touch, others []*Lease) error {
	m := k.s.hold.m
	until := m.clk.Now().Add(m.timing.Answer())
	err := k.touch(ctx, until, touch)
	ctx, cancel := clock.WithDeadline(ctx, m.clk, until)
	defer cancel()
	return errors.Join(err, k.looks.Look(ctx, others))
}

// watchOver has the session look at its leases from its first one on.
func (s *Session) watchOver() {
	s.looking.Do(func() {
		st := s.hold.m.run.Store
		k := &looker{s: s, touched: map[*Lease]*store.Record{}, following: map[*Lease]struct{}{}, followAt: clock.NoDeadline}
		k.looks = drive.Looks[*Lease]{
			Store: st, Term: func(l *Lease) store.Record { return l.kept },
			Over: func(l *Lease) bool { return l.term.Until() == clock.Ended },
			End:  func(l *Lease, cause protocol.Cause, why error) { l.end(causeOf(cause), why) },
		}
		_, k.touches = st.(driver.Toucher)
		props := store.Describe(st)
		if k.pushes = props.Push && !props.WaitLingers; k.pushes {
			k.pushed = make(chan struct{}, 1)
		}
		s.enlisted = make(chan struct{}, 1)
		s.Background(k.run) // or the manager is closed, which ends the session
	})
	wake(s.enlisted)
}
