package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
)

// Client makes plain calls to a lock server. It is safe for concurrent use.
//
// A call that gets no answer is sent again, on another connection. That continues for [Retry.For]
// beyond the time that it waits for, or until its context is done, and is safe for every call. When
// there still is no answer, the error of a call that changes something matches
// [store.ErrUnknownOutcome]: it may have been done. After every other error it was not done.
type Client struct {
	*conn
	kept kept
}

// New returns a client of the server at that URL. It does no I/O. Close it when it is done with.
func New(base string, opts Options) (*Client, error) {
	c, err := newConn(base, opts)
	if err != nil {
		return nil, err
	}
	return &Client{conn: c}, nil
}

// Close ends running calls with [store.ErrClosed], and blocks until they return. Held names stay
// held. Closing twice is no error.
func (c *Client) Close() error {
	c.close()
	return nil
}

// AcquireOptions of [Client.Acquire].
type AcquireOptions struct {
	// What the holder calls itself: by default what the server knows the caller as.
	Holder string
	// How long the hold lasts after its last renewal, to the millisecond; the server's default if
	// 0.
	TTL  time.Duration
	Wait time.Duration // how long to wait for the name at most; 0 for not at all
	// Keeps the lease, instead of renewals of its own; the zero value for none.
	Session Session
	Info    map[string]string // for people; no key may begin with a dot
}

// Acquire acquires a name, after a wait in the server's queue if the options ask for one. The end
// of ctx ends the wait, and gives up the place. If the wait has used up a grant's validity, Acquire
// renews the grant before it returns.
//
// The error is a *[lease.HeldError] when another holds the name. It matches [ErrRemoved] when an
// operator ended the wait. After one that matches [store.ErrUnknownOutcome] the name may be held
// for one TTL, without a holder that knows of it.
func (c *Client) Acquire(ctx context.Context, name string, opts AcquireOptions) (Grant, error) {
	q := request{method: http.MethodPost, path: leasePath(name), header: http.Header{api.HeaderKey: {rand.Text()}}}
	opts.Session.prove(q.header)
	var w api.Grant
	sentAt := c.clk.Now()
	err := c.answered(ctx, effort{what: name, wait: opts.Wait, write: true}, q, func(wait time.Duration) any {
		sentAt = c.clk.Now() // the answer to this one is what counts
		return api.AcquireRequest{Holder: opts.Holder, TTL: seconds(opts.TTL), Wait: seconds(wait), Session: opts.Session.ID, Info: opts.Info}
	}, &w)
	if err != nil {
		return Grant{}, err
	}
	g := c.grantOf(w, sentAt)
	c.kept.add(opts.Session.ID, g.Name, g.Token)
	if g.Left() > g.RenewEvery {
		return g, nil
	}
	renewed, err := c.Renew(ctx, g, 0)
	if err != nil {
		return Grant{}, fmt.Errorf("renew what was granted under token %d: %w", g.Token, err)
	}
	renewed.Waited = g.Waited
	return renewed, nil
}

// Renew renews a term, with another TTL from now on if ttl isn't 0, and returns the renewed term.
// The error is a *[fence.StaleError] when the term is over. It is a *[lease.LostError] when an
// operator broke the term: then stop the guarded work, and release it. A lease that a session keeps
// is renewed with the session.
func (c *Client) Renew(ctx context.Context, g Grant, ttl time.Duration) (Grant, error) {
	var w api.Grant
	sentAt := c.clk.Now()
	err := c.answered(ctx, effort{what: g.Name, write: true}, c.ofTerm(http.MethodPut, g), func(time.Duration) any {
		sentAt = c.clk.Now()
		return api.RenewRequest{TTL: seconds(ttl)}
	}, &w)
	if err != nil {
		return Grant{}, err
	}
	w.Secret = string(g.Secret) // which only the first answer has
	return c.grantOf(w, sentAt), nil
}

// Release ends a term. It is sent even if ctx is done, because the next holder waits a TTL for a
// release that doesn't arrive. It blocks for [Retry.For] at most. The error is a
// *[fence.StaleError] when the term was over already.
func (c *Client) Release(ctx context.Context, g Grant) error {
	c.kept.remove(g.Session, g.Name, g.Token)
	return c.answered(context.WithoutCancel(ctx), effort{what: g.Name, write: true, settled: over}, c.ofTerm(http.MethodDelete, g), nil, nil)
}

// over reports whether an error says that a term is over: after a try to end it whose answer was
// lost, that it was ended.
func over(err error) bool { return errors.Is(err, fence.ErrStale) }

// ofTerm is a request about a term.
func (c *Client) ofTerm(method string, g Grant) request {
	return request{method: method, path: leasePath(g.Name), header: http.Header{fence.Header: {g.Sequencer}, api.HeaderSecret: {string(g.Secret)}}}
}

// Eviction says which term [Client.Break] ends, and what it writes down about that.
type Eviction struct {
	Token fence.Token // of the term to end; no other term is affected
	Note  string      // why
	// Grace is how long others leave the name to a holder that does not release it; 0 means its
	// TTL, which is safe. With less, the old holder may still be working when the next one starts.
	Grace time.Duration
}

// Break ends a hold against its holder's will, and returns the state of the name afterwards. The
// name is broken until its holder has released it or the grace is over. The error is a
// *[fence.StaleError] when the term is over already.
func (c *Client) Break(ctx context.Context, name string, e Eviction) (Lease, error) {
	return c.order(ctx, effort{what: name, settled: over}, name, "break", func(time.Duration) any {
		return api.BreakRequest{Token: e.Token, Note: e.Note, Grace: seconds(e.Grace)}
	})
}

// Handover says to which candidate [Client.HandOver] hands over.
type Handover struct {
	// A candidate's name, its holder's id, or the beginning of one up to a slash; "" for the next
	// in order.
	To string
	// Of the only term to end; 0 for that of the leader at the time of the call.
	Token  fence.Token
	Reason string        // for people
	Wait   time.Duration // how long to wait until another candidate leads
}

// HandOver has the leader of an election hand over. It returns the state of the name when another
// candidate leads, or when the wait is over. The order stays in force while that term lasts.
// Nothing happens if To leads already.
//
// The error matches [election.ErrNoLeader], [election.ErrNoCandidate], or [election.ErrNotElected]
// when the holder of the name is not a candidate. It is a *[fence.StaleError] when the term of
// the token is over.
func (c *Client) HandOver(ctx context.Context, name string, h Handover) (Lease, error) {
	if h.To == "" && h.Token == 0 { // else it would be handed over again when it is sent again
		now, err := c.Get(ctx, name)
		if err != nil {
			return Lease{}, err
		}
		if now.Holder != "" {
			h.Token = now.Token
		}
	}
	return c.order(ctx, effort{what: name, wait: h.Wait, settled: over}, name, "handoff", func(wait time.Duration) any {
		return api.HandoffRequest{To: h.To, Any: h.To == "", Token: h.Token, Reason: h.Reason, Wait: seconds(wait)}
	})
}

// PauseOptions say why and how long nobody leads.
type PauseOptions struct {
	Reason string // for people; required
	// How long: [election.MinPause] to [election.MaxPause]; 0 is until [Client.Resume].
	For  time.Duration
	Wait time.Duration // how long to wait until nobody leads
}

// Pause keeps every candidate from leading the election of a name until [Client.Resume], or until
// the pause ends by itself. It returns the state of the name when nobody leads, or when the wait is
// over. A holder that is not a candidate is not affected. A pause that ends by itself is for
// liveness: see [election.Pause].
func (c *Client) Pause(ctx context.Context, name string, o PauseOptions) (Lease, error) {
	return c.order(ctx, effort{what: name, wait: o.Wait}, name, "pause", func(wait time.Duration) any {
		return api.PauseRequest{Reason: o.Reason, For: seconds(o.For), Wait: seconds(wait)}
	})
}

// Resume ends the pause of that id, or all with [election.AllPauses]; with "" the one that there
// is. The error matches [election.ErrNotPaused] when there is none, and [election.ErrPauses] when
// there are several and id is "".
func (c *Client) Resume(ctx context.Context, name, id string) (Lease, error) {
	e := effort{what: name, settled: func(err error) bool { return errors.Is(err, election.ErrNotPaused) }}
	return c.order(ctx, e, name, "resume", func(time.Duration) any { return api.ResumeRequest{ID: id} })
}

// order sends what is posted under a name.
func (c *Client) order(ctx context.Context, e effort, name, what string, body func(time.Duration) any) (Lease, error) {
	var w api.Lease
	e.write = true
	err := c.answered(ctx, e, request{method: http.MethodPost, path: leasePath(name) + "/" + what}, body, &w)
	if err == nil && w.Name == "" { // it was carried out by the try before, whose answer was lost
		return c.Get(ctx, name)
	}
	return leaseOf(w), err
}

// Get returns the state of a name. A name that was never held is free, with token 0.
func (c *Client) Get(ctx context.Context, name string) (Lease, error) {
	var w api.Lease
	err := c.read(ctx, name, leasePath(name), nil, &w)
	return leaseOf(w), err
}

// History returns the terms of a name, the present one first. The server remembers the last 8 that
// are over.
func (c *Client) History(ctx context.Context, name string) ([]Term, error) {
	var w api.History
	err := c.read(ctx, name, leasePath(name)+"/history", nil, &w)
	var terms []Term
	for _, t := range w.Terms {
		terms = append(terms, Term{Holder: t.Holder, Token: t.Token, From: t.From, Until: t.Until, Ended: t.Ended})
	}
	return terms, err
}

// Turns returns the last 8 turns of a job in which its command was begun, the last one first. A
// name that is no job has none, nor has one on an earlier server.
func (c *Client) Turns(ctx context.Context, name string) ([]Turn, error) {
	var w api.History
	err := c.read(ctx, name, leasePath(name)+"/history", nil, &w)
	var all []Turn
	for _, t := range w.Turns {
		all = append(all, *turnOf(&t))
	}
	return all, err
}

// Waiters returns the waiters for a name at this server, in order.
func (c *Client) Waiters(ctx context.Context, name string) ([]Waiter, error) {
	var w api.Waiters
	err := c.read(ctx, name, leasePath(name)+"/waiters", nil, &w)
	var all []Waiter
	for _, one := range w.Waiters {
		all = append(all, Waiter{Holder: one.Holder, Waited: time.Duration(one.Waited), Left: time.Duration(one.Left), Info: one.Info})
	}
	return all, err
}

// listPage is how many names one request for a list asks for.
const listPage = 1000

// List yields the names that begin with prefix, in order, with their states at that moment. After
// an error the sequence ends. A name whose record can't be read is [Unreadable], and no error.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Lease, error] {
	return func(yield func(Lease, error) bool) {
		query := url.Values{"prefix": {prefix}, "limit": {strconv.Itoa(listPage)}}
		for {
			var page api.List
			if err := c.read(ctx, "list "+prefix, "/v1/leases", query, &page); err != nil {
				yield(Lease{}, err)
				return
			}
			for _, l := range page.Leases {
				if !yield(leaseOf(l), nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

// Verify asks whether a sequencer is of the current term of its name. A guard that sees every write
// itself doesn't need to ask: see package fence.
func (c *Client) Verify(ctx context.Context, sequencer string) (Verification, error) {
	var w api.Verification
	err := c.answered(ctx, effort{what: "verify"}, request{method: http.MethodPost, path: "/v1/verify"}, func(time.Duration) any {
		return api.VerifyRequest{Sequencer: sequencer}
	}, &w)
	v := Verification{Name: w.Name, Holder: w.Holder, Token: w.Token, Current: w.Current, Reason: w.Reason}
	if w.Now != nil {
		now := leaseOf(*w.Now)
		v.Now = &now
	}
	return v, err
}

func leasePath(name string) string { return "/v1/leases/" + segment(name) }
