package server

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// observePoll bounds how long the end of a leader that has died goes unnoticed beyond its TTL.
const observePoll = time.Second

// handoff has whoever leads a name hand over. The order is written when it answers; with "wait" it
// has been carried out, or the wait is over: what it answers is how the name stands then.
func (s *Server) handoff(c *call) (any, error) {
	var body api.HandoffRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	if (body.To == "") != body.Any {
		return nil, api.Invalid("to", body.To, `the candidate that is to lead, as GET lists it; or "any": true, for the next in order`)
	}
	if body.Token > fence.MaxToken {
		return nil, api.Invalid("token", body.Token.String(), "the token of the term to end, or none for any leader")
	}
	wait, leave, err := s.enterFor(c, body.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	name := c.r.PathValue("name")
	c.event.Token, c.event.Note = body.Token, note("to "+body.To, body.Reason)
	h, err := election.HandOver(c.r.Context(), s.st, name, election.HandOverOptions{Token: body.Token, To: body.To, By: note(c.by(), body.Reason)})
	c.event.Holder = h.From.Owner
	if err != nil {
		return nil, s.named(c, h.From, err)
	}
	c.ordered, c.event.Token = true, h.From.Token
	if h.AlreadyLeads {
		return s.standing(c.r.Context(), name)
	}
	c.event.reason = "handed_over"
	return s.await(c, wait, func(l election.Leader) bool { return l.Owner != "" && l.Token > h.From.Token })
}

// pause has nobody lead a name until it is resumed, or "for" is over. With "wait" it answers when
// nobody leads, or when the wait is over.
func (s *Server) pause(c *call) (any, error) {
	var body api.PauseRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	if body.Reason == "" {
		return nil, api.Invalid("reason", "", "why, for people who wonder that nobody leads")
	}
	length, err := within("for", body.For, 0, election.MinPause, election.MaxPause)
	if err != nil {
		return nil, err
	}
	wait, leave, err := s.enterFor(c, body.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.event.Note = body.Reason
	if length > 0 {
		c.event.Note += ", for " + length.String()
	}
	leader, err := election.Current(c.r.Context(), s.st, c.r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	c.event.Holder, c.event.Token = leader.Owner, leader.Token
	p := election.Pause{By: c.by(), Reason: body.Reason, Since: s.clk.Wall()}
	if length > 0 {
		p.Until = p.Since.Add(length)
	}
	if err := election.SetPause(c.r.Context(), s.st, c.r.PathValue("name"), p); err != nil {
		return nil, err
	}
	c.ordered, c.event.reason = true, "paused"
	return s.await(c, wait, func(l election.Leader) bool { return l.Owner == "" })
}

// resume ends a pause, or all.
func (s *Server) resume(c *call) (any, error) {
	var body api.ResumeRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	name := c.r.PathValue("name")
	if err := election.Resume(c.r.Context(), s.st, name, body.ID); err != nil {
		return nil, s.named(c, election.Leader{}, err)
	}
	c.ordered = true
	return s.standing(c.r.Context(), name)
}

// await returns how the name in the path stands once reached says so of its leader, or when the
// wait is over.
func (s *Server) await(c *call, wait time.Duration, reached func(election.Leader) bool) (any, error) {
	name := c.r.PathValue("name")
	if wait > 0 {
		begun := s.clk.Now()
		c.patience.extend(wait)
		ctx, cancel := s.until(c.r.Context(), wait)
		defer cancel()
		for l, err := range election.Watch(ctx, s.st, name, election.WatchOptions{Clock: s.clk, Poll: observePoll}) {
			if err == nil && reached(l) {
				break
			}
		}
		c.event.Waited = s.clk.Now().Sub(begun)
	}
	return s.standing(c.r.Context(), name)
}

// standing returns how a name stands, with what is left of the session that keeps it, and its
// election.
func (s *Server) standing(ctx context.Context, name string) (*api.Lease, error) {
	rec, err := store.Load(ctx, s.st, name)
	if err != nil {
		return nil, err
	}
	l := s.lease(rec)
	if err := s.withSession(ctx, &l); err != nil {
		return nil, err
	}
	all, err := turns.Load(ctx, s.st, name)
	if err != nil && !errors.Is(err, store.ErrCorrupt) {
		return nil, err
	}
	if l.AddTurns(all); err != nil {
		l.Problem = s.problem(err) // the hold can be told all the same
	}
	if driver.CheckKey(kinds.Elections+name) != nil {
		return &l, nil // too long a name for an election
	}
	if rec, err = store.Load(ctx, s.st, kinds.Elections+name); err != nil {
		return nil, err
	}
	state, err := ballot.StateOf(rec, s.clk.Wall())
	if err != nil {
		l.Problem = s.problem(err) // the hold can be told all the same
	}
	l.AddElection(state)
	return &l, nil
}

// named is the problem of an order that can't be given, and who leads, if that is known.
func (s *Server) named(c *call, leader election.Leader, err error) error {
	p := s.failure(c.r, err)
	p.Name = c.r.PathValue("name")
	if p.Holder == "" {
		p.Holder, p.Token = leader.Owner, leader.Token
	}
	return p
}

// by is who the caller is, for people: an address is better than nothing.
func (c *call) by() string {
	if who := c.caller.Name(); who != "" {
		return who
	}
	return c.event.Remote
}

// note is what was done, and why.
func note(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
