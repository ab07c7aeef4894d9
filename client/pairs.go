package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
)

// The errors of [Client.SwitchOver], [Client.HoldPassive] and [Client.EndHold].
var (
	ErrNoPair       = api.ErrNoPair       // no instance has ever looked at a lease of that name
	ErrNobodyActive = api.ErrNobodyActive // there is nothing to hand over
	ErrNoInstance   = api.ErrNoInstance   // the instance is not there, or warms up
	// ErrForeign: the active instance is one of Admiral itself, which takes no orders.
	ErrForeign        = api.ErrForeign
	ErrNotHeldPassive = api.ErrNotHeldPassive // there is no hold to end
)

// Pair is the instances of `leasehold standby` that share a lease, as the server shows them.
type Pair struct {
	Lease  string // the name of the lease
	State  string // "active", "held passive", "free", …: as docs/json.md lists them
	Pod    string // podIdentifier of the instance that holds the lease; "" where it names none
	Region string
	Owner  string      // the id under which it holds the lease
	Token  fence.Token // of the term, or of the last one
	// When the term began, or the last one ended, by the wall clock of who wrote that; for people.
	Since time.Time
	Note  string        // an operator's word: who holds the pair passive, and why
	TTL   time.Duration // how long a term lasts past its last renewal; 0 where nobody says so
	// Of a pair that is held passive: certainly no instance is active.
	Settled bool

	Instances []Instance   // those that answered when they were asked last
	Asked     time.Time    // when they were; zero if they were not yet
	Changes   []PairChange // of who is active, the latest first
}

// Instance is one that has answered.
type Instance struct {
	Pod, Region string
	Owner       string // its id as a holder
	Status      string // "active", "passive" or "warming up"
	Waits       string // what a passive instance waits for
	// How far its wall clock and the store's are apart at least; nil where the store doesn't tell
	// its own.
	ClockApart *time.Duration
}

// PairChange is a change of who is active.
type PairChange struct {
	// When the new term began, by its holder's wall clock; for people. Zero of an instance of
	// Admiral itself, which doesn't say.
	At       time.Time
	From, To string // pods; SKIP-LEASE-POD for an operator's hold
	Why      string // why the term before ended
	// For how long nobody was active, and the bound of that where the term before expired; nil
	// where it isn't known.
	Gap, GapAtMost *time.Duration
}

func pairOf(w api.Pair) Pair {
	p := Pair{
		Lease: w.Lease, State: string(w.State), Pod: w.Pod, Region: w.Region, Owner: w.Owner, Token: w.Token, Note: w.Note, Settled: w.Settled,
	}
	if w.Since != nil {
		p.Since = *w.Since
	}
	if w.TTL != nil {
		p.TTL = time.Duration(*w.TTL)
	}
	if w.Asked != nil {
		p.Asked = *w.Asked
	}
	for _, i := range w.Instances {
		one := Instance{Pod: i.Pod, Region: i.Region, Owner: i.Owner, Status: i.Status, Waits: i.Waits}
		if i.ClockApart != nil {
			one.ClockApart = new(time.Duration(*i.ClockApart * float64(time.Second)))
		}
		p.Instances = append(p.Instances, one)
	}
	for _, c := range w.Changes {
		change := PairChange{From: c.From, To: c.To, Why: c.Why, Gap: (*time.Duration)(c.Gap), GapAtMost: (*time.Duration)(c.GapAtMost)}
		if c.At != nil {
			change.At = *c.At
		}
		p.Changes = append(p.Changes, change)
	}
	return p
}

// Pairs returns the pairs in the server's store that the caller may read, by name. It asks no
// instances.
func (c *Client) Pairs(ctx context.Context) ([]Pair, error) {
	var w api.Pairs
	err := c.read(ctx, "pairs", "/v1/pairs", nil, &w)
	var all []Pair
	for _, p := range w.Pairs {
		all = append(all, pairOf(p))
	}
	return all, err
}

// Pair returns how a pair stands. What its instances say is what they said last: the server asks
// them while somebody calls Pair, every 15 s. The error matches [ErrNoPair] when no instance has
// ever looked at that lease.
func (c *Client) Pair(ctx context.Context, name string) (Pair, error) {
	var w api.Pair
	err := c.read(ctx, name, pairPath(name), nil, &w)
	return pairOf(w), err
}

// Switchover says which instance [Client.SwitchOver] makes active.
type Switchover struct {
	To    string        // its podIdentifier
	Token fence.Token   // of the only term to end; 0 for any
	Wait  time.Duration // how long the instances have; 0 for 30 s
}

// SwitchOver has the active instance hand over to another. It returns when that one has confirmed
// it by a write of its own. Nothing happens if To is active already.
//
// The error matches [ErrNobodyActive], [ErrForeign] or [ErrNoInstance], and is a
// *[fence.StaleError] when the term of the token is over. After an error that matches
// [store.ErrUnknownOutcome] the lease may still move: look at the pair.
func (c *Client) SwitchOver(ctx context.Context, name string, s Switchover) (Pair, error) {
	if s.Wait == 0 {
		s.Wait = 30 * time.Second
	}
	var refused error // of a try after one that may have been carried out
	e := effort{what: name, wait: s.Wait, settled: func(err error) bool {
		refused = err
		return over(err)
	}}
	p, err := c.orderPair(ctx, e, name, "switchover", func(wait time.Duration) any {
		return api.SwitchoverRequest{To: s.To, Token: s.Token, Wait: seconds(max(wait, time.Second))}
	})
	if err == nil && refused != nil && over(refused) && p.Pod != s.To {
		return p, refused // the term has ended by something else
	}
	return p, err
}

// PassiveOptions say why nobody is active, and which term ends.
type PassiveOptions struct {
	Reason string      // for people; required
	Token  fence.Token // of the only term to end; 0 for any
	// How long to wait until the active instance has certainly stopped, which takes the TTL.
	Wait time.Duration
}

// HoldPassive has every instance be passive until [Client.EndHold]. The active one becomes passive
// at its next renewal, at the latest after the TTL: then the pair is settled. The error is a
// *[fence.StaleError] when the term of the token is over.
func (c *Client) HoldPassive(ctx context.Context, name string, o PassiveOptions) (Pair, error) {
	return c.orderPair(ctx, effort{what: name, wait: o.Wait}, name, "hold", func(wait time.Duration) any {
		return api.HoldRequest{Reason: o.Reason, Token: o.Token, Wait: seconds(wait)}
	})
}

// EndHold ends a hold: an instance becomes active at once if the pair is settled, and otherwise
// after the TTL. The error matches [ErrNotHeldPassive] when there is no hold.
func (c *Client) EndHold(ctx context.Context, name string) (Pair, error) {
	e := effort{what: name, settled: func(err error) bool { return errors.Is(err, ErrNotHeldPassive) }}
	return c.orderPair(ctx, e, name, "resume", func(time.Duration) any { return struct{}{} })
}

// orderPair sends what is posted under a pair.
func (c *Client) orderPair(ctx context.Context, e effort, name, what string, body func(time.Duration) any) (Pair, error) {
	var w api.Pair
	e.write = true
	err := c.answered(ctx, e, request{method: http.MethodPost, path: pairPath(name) + "/" + what}, body, &w)
	if err == nil && w.Lease == "" { // it was carried out by the try before, whose answer was lost
		return c.Pair(ctx, name)
	}
	return pairOf(w), err
}

func pairPath(name string) string { return "/v1/pairs/" + segment(name) }
