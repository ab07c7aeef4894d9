package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Callbacks are the functions that a candidate calls.
type Callbacks struct {
	// OnStartedLeading is called when a term begins, and leads. It is required. Its context ends
	// before the term's validity does, and when the leader has to step down. The context's cause
	// gives the reason. When OnStartedLeading returns, the term ends: the name is released, and the
	// candidate campaigns again.
	//
	// If it returns by itself within a TTL, the candidate first rests. The rest is a hundredth of
	// the TTL, and twice as long each time, up to four TTLs. During the rest others see that the
	// candidate isn't eligible.
	//
	// OnStartedLeading is called on a goroutine of its own, and never twice at a time.
	OnStartedLeading func(ctx context.Context, term Term)

	// OnStoppedLeading is called after OnStartedLeading has returned, and before the name is
	// released.
	OnStoppedLeading func()

	// OnNewLeader is called when another leader is seen, this candidate included. It must not
	// block.
	OnNewLeader func(Leader)

	// OnStopping is called when OnStartedLeading's context has ended, with its cause. It must not
	// block.
	OnStopping func(term Term, cause error)

	// OnStopTimeout is called when OnStartedLeading has not returned in time: see the package's
	// doc. It may end the process, and has to when the leader can't be stopped in another way. It
	// must not block.
	OnStopTimeout func(term Term, cause error)

	// OnError is called when the candidate can't learn whether it may lead, and when the reason
	// changes. The candidate begins no term then, and retries. It is also called with
	// [ErrUnlisted]. When something keeps the candidate from acquiring the name,
	// [lease.Options.OnRetry] is called instead. OnError must not block.
	OnError func(error)
}

// Options of a candidate. The zero value is a candidate among equals.
type Options struct {
	Name     string // shown to people, and named in transfers; the manager's owner id by default
	Priority int    // the highest is preferred, when the name is free and in FailBack
	Zone     string // where the candidate is

	// Zones, if set, are preferred in this order, before any priority.
	Zones []string

	// Eligible, if set, returns whether the candidate may lead now. It is called every third of the
	// TTL, and must not block.
	Eligible func() bool

	// FailBack says when a leader steps down for a preferred candidate. In any case, a candidate
	// leaves a name that has become free to preferred candidates for a while. That is a thirtieth
	// of the TTL for each known one, and a tenth at most.
	FailBack FailBack

	// MinHold is how long a leader leads before it gives way, against flapping.
	MinHold time.Duration

	// StopMargin is how long before the end of validity the leader's context ends: a tenth of the
	// TTL by default, a third at most.
	StopMargin time.Duration

	// StopWithin is how long OnStartedLeading may take to return when the leader steps down, before
	// OnStopTimeout is called: half of the TTL by default.
	StopWithin time.Duration
}

// FailBack is a policy. The zero one is to stay.
type FailBack struct {
	After time.Duration // step down when a preferred candidate has been there that long; 0 is never
	// If set, and it returns true, give way at once; asked every third of the TTL.
	Idle func() bool
}

// Term is one term, as its leader sees it.
type Term struct {
	Name   string
	Leader string // owner id
	Token  fence.Token

	lease *lease.Lease
	led   *leadership
}

// Check returns nil while the term is valid at this instant; see [lease.Lease.Check].
func (t Term) Check() error { return t.lease.Check() }

// ValidUntil returns the instant of the manager's clock at which the term ends unless it is
// renewed; see [lease.Lease.ValidUntil].
func (t Term) ValidUntil() clock.Instant { return t.lease.ValidUntil() }

// Sequencer returns what a request to a guarded resource carries.
func (t Term) Sequencer() fence.Sequencer { return t.lease.Sequencer() }

// Resign has the leader step down, as returning from OnStartedLeading does. The context of
// OnStartedLeading ends. When it has returned, another candidate is next, if there is one. Resign
// doesn't block, and does nothing once the term is over.
func (t Term) Resign() { t.stepDown("") }

// HandOver has the leader step down in favour of the candidate to, which is a name or an owner id.
// The context of OnStartedLeading ends. When it has returned, the name is handed over in one write.
//
// Transfer first reads the candidates, and blocks until the store has answered or ctx is done.
// After an error nothing has happened. The error matches [ErrNoCandidate] when no candidate that
// may lead is known by that name. Transfer does nothing once the term is over. If the successor has
// died meanwhile, the name is free for the others after the TTL.
func (t Term) HandOver(ctx context.Context, to string) error {
	c := t.led.c
	if err := c.refresh(ctx); err != nil {
		return err
	}
	owner, err := successor(c.look().Ballot, t.Name, to)
	if err == nil {
		t.stepDown(owner)
	}
	return err
}

func (t Term) stepDown(to string) {
	select {
	case t.led.wishes <- to:
	default: // it is asked for already
	}
}

// Why a leader has to stop: the causes of its context, for [errors.Is].
var (
	ErrExpiring    = errors.New("the term is about to expire")
	ErrPaused      = errors.New("the election is paused")
	ErrOrdered     = errors.New("the leader is to step down")
	ErrPreferred   = errors.New("another candidate is preferred")
	ErrNotEligible = errors.New("this candidate is not eligible now")
)

// ErrUnlisted says that the list of candidates is full. A candidate that isn't on it campaigns and
// leads as the others do. But others can't hand over to it, don't prefer it, and don't see it.
var ErrUnlisted = errors.New("the list of candidates is full, so this one isn't on it")

// Run is a candidate until ctx is done, and then returns ctx's cause. It campaigns, leads and
// campaigns again. It retries after an error of the store. It returns another error only for wrong
// callbacks, a wrong name or options, a closed manager, or a name in use as another kind: a
// *[store.KindError]. When it returns, nothing of it runs, its name is released and its session
// closed.
func Run(ctx context.Context, m *lease.Manager, name string, cb Callbacks, opts Options) error {
	if err := check(m, name, cb, &opts); err != nil {
		return err
	}
	c := &candidate{m: m, clk: m.Clock(), name: name, cb: cb, opts: opts, changed: make(chan struct{}), relist: make(chan struct{}, 1)}
	c.follows = store.Describe(m.Store()).CheapWait
	for n := 0; ctx.Err() == nil; n++ {
		s, err := m.OpenSession(ctx)
		if errors.Is(err, lease.ErrClosed) {
			return err
		}
		if err == nil {
			n = 0
			err = c.stand(ctx, s)
		}
		if errors.Is(err, store.ErrKind) {
			return err
		}
		if ctx.Err() == nil {
			_ = clock.Sleep(ctx, c.clk, min(m.TTL()/100<<min(n, 6), m.TTL()/3))
		}
	}
	return context.Cause(ctx)
}

func check(m *lease.Manager, name string, cb Callbacks, o *Options) error {
	if m == nil {
		return errors.New("election: manager is nil")
	}
	if cb.OnStartedLeading == nil {
		return errors.New("election: OnStartedLeading is nil: want what leads")
	}
	if err := checkName(name); err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = m.Holder()
	}
	if len(o.Name) > maxText || len(o.Zone) > maxText {
		return fmt.Errorf("election %s: name %.40q or zone %.40q: want at most %d bytes", name, o.Name, o.Zone, maxText)
	}
	if o.StopMargin == 0 {
		o.StopMargin = m.TTL() / 10
	}
	if o.StopWithin == 0 {
		o.StopWithin = m.TTL() / 2
	}
	if o.StopMargin < 0 || o.StopMargin > m.TTL()/3 {
		return fmt.Errorf("election %s: StopMargin %v: want at most a third of the TTL, %v", name, o.StopMargin, m.TTL()/3)
	}
	if o.StopWithin < 0 || o.MinHold < 0 || o.FailBack.After < 0 {
		return fmt.Errorf("election %s: StopWithin %v, MinHold %v, FailBack.After %v: want 0 or more", name, o.StopWithin, o.MinHold, o.FailBack.After)
	}
	return nil
}
