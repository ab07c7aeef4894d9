package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// renewals is how many renewals fit into a TTL: what is recommended to holders.
const renewals = 3

func (s *Server) acquire(c *call) (any, error) {
	req, err := s.request(c)
	if err != nil {
		return nil, err
	}
	leave, err := s.enter(c, req.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	asked, err := s.tally.reserve(c.payer, req.Key, "", share(false, req.Key, req.Info))
	if err != nil {
		return nil, err
	}
	begun := c.patience.extend(req.Wait)
	g, err := s.reg.Acquire(c.r.Context(), req)
	now := s.clk.Now()
	c.event.Waited = now.Sub(begun)
	if err != nil {
		s.tally.giveUp(asked)
		return nil, err
	}
	s.tally.keep(asked, g.Record)
	c.status = http.StatusCreated
	answer, err := s.grant(c, g, now)
	if err != nil {
		return nil, err
	}
	waited := api.Seconds(c.event.Waited)
	answer.Waited, answer.Secret = &waited, g.Secret
	c.w.Header().Set(api.HeaderSecret, g.Secret)
	return answer, nil
}

// request reads what a caller wants.
func (s *Server) request(c *call) (lessor.Request, error) {
	var body api.AcquireRequest
	if err := c.read(&body); err != nil {
		return lessor.Request{}, err
	}
	ttl, err := within("ttl", body.TTL, s.opts.TTL, store.MinTTL, s.opts.MaxTTL)
	if err != nil {
		return lessor.Request{}, err
	}
	wait, err := within("wait", body.Wait, 0, 0, s.opts.MaxWait)
	if err != nil {
		return lessor.Request{}, err
	}
	req := lessor.Request{
		Key: c.r.PathValue("name"), Owner: owner(s.called(c, body.Holder)), TTL: ttl, Wait: wait, Session: body.Session, Info: body.Info,
	}
	if body.Session != "" {
		if req.Owner, err = s.ownerOf(c, body.Session); err != nil {
			return lessor.Request{}, err
		}
	}
	req.ID = c.requestID()
	return req, nil
}

// requestID is the same when the same caller sends a request with the same key again, and nobody
// else's; "" without a key. Callers without a name are told apart by the key alone.
func (c *call) requestID() string {
	key := c.r.Header.Get(api.HeaderKey)
	if key == "" {
		return ""
	}
	who := c.caller.Name()
	return fmt.Sprintf("http %d %s/%s", len(who), who, key)
}

// called is what a holder calls itself, and else what the caller is known as.
func (s *Server) called(c *call, holder string) string {
	if holder == "" {
		holder = c.caller.Name()
	}
	return strings.TrimSuffix(holder, "/")
}

// grant returns the answer to a request that was granted a term at now.
func (s *Server) grant(c *call, g lessor.Grant, now clock.Instant) (*api.Grant, error) {
	rec := g.Record
	valid := validFor(g, now)
	seq := fence.Sequencer{Name: rec.Key, Holder: rec.Owner, Token: rec.Token}
	text, err := s.signed(seq)
	if err != nil {
		return nil, err
	}
	answer := &api.Grant{Lease: s.lease(rec), Sequencer: text}
	s.margins.granted(g, c.came)
	if g.ValidUntil != clock.NoDeadline {
		every := api.Seconds(rec.TTL / renewals)
		answer.ValidFor, answer.RenewEvery = &valid, &every
	}
	c.event.Holder, c.event.Token = rec.Owner, rec.Token
	c.w.Header().Set(api.HeaderToken, rec.Token.String())
	c.w.Header().Set(fence.Header, answer.Sequencer)
	return answer, nil
}

// signed is a sequencer as it is given out.
func (s *Server) signed(seq fence.Sequencer) (string, error) {
	if s.opts.Keys != nil {
		return s.opts.Keys.Sign(seq)
	}
	return seq.String(), nil
}

// validFor is for how long a grant is valid from now on, to the millisecond, rounded down.
func validFor(g lessor.Grant, now clock.Instant) api.Seconds {
	return api.Seconds(max(g.ValidUntil.Sub(now), 0).Truncate(time.Millisecond))
}

func (s *Server) renew(c *call) (any, error) {
	c.came = s.clk.Now()
	holder, token, err := s.term(c)
	if err != nil {
		return nil, err
	}
	ttl, err := s.renewal(c)
	if err != nil {
		return nil, err
	}
	g, err := s.reg.Renew(c.r.Context(), c.r.PathValue("name"), holder, token, ttl, c.proof())
	if err != nil {
		return nil, err
	}
	s.renewed(c, g)
	return s.grant(c, g, s.clk.Now())
}

// renewal reads the TTL that a renewal asks for; 0 for the one that there is.
func (s *Server) renewal(c *call) (time.Duration, error) {
	var body api.RenewRequest
	if err := c.read(&body); err != nil {
		return 0, err
	}
	return within("ttl", body.TTL, 0, store.MinTTL, s.opts.MaxTTL)
}

func (s *Server) release(c *call) (any, error) {
	holder, token, err := s.term(c)
	if err != nil {
		return nil, err
	}
	_, err = s.reg.Release(c.r.Context(), c.r.PathValue("name"), holder, token, "released", c.proof())
	if err == nil {
		s.tally.over(c.r.PathValue("name"))
		s.margins.over(c.r.PathValue("name"))
	}
	return nil, err
}

func (s *Server) show(c *call) (any, error) {
	return s.standing(c.r.Context(), c.r.PathValue("name"))
}

// load reads the record of the name in the path. A name that nobody ever held is free.
func (s *Server) load(c *call) (store.Record, error) {
	return store.Load(c.r.Context(), s.st, c.r.PathValue("name"))
}

func (s *Server) history(c *call) (any, error) {
	rec, err := s.load(c)
	if err != nil {
		return nil, err
	}
	terms := []api.Term{}
	if rec.Owner != "" {
		terms = append(terms, api.Term{Holder: rec.Owner, Token: rec.Token, From: rec.Acquired})
	}
	all, err := turns.Load(c.r.Context(), s.st, rec.Key)
	if err != nil && !errors.Is(err, store.ErrCorrupt) { // the terms can be told all the same
		return nil, err
	}
	l := s.lease(rec)
	return api.History{Name: rec.Key, Terms: append(terms, api.PastOf(rec)...), Turns: l.TurnsOf(all)}, nil
}

func (s *Server) waiters(c *call) (any, error) {
	name := c.r.PathValue("name")
	if err := driver.CheckKey(name); err != nil {
		return nil, err
	}
	now := s.clk.Now()
	all := []api.Waiter{}
	for _, w := range s.reg.Waiting(name) {
		all = append(all, api.Waiter{Holder: w.Owner, Waited: api.Seconds(now.Sub(w.Since)), Left: api.Seconds(max(w.Until.Sub(now), 0)), Info: lessor.Shown(w.Info)})
	}
	return api.Waiters{Name: name, Waiters: all}, nil
}

func (s *Server) breakHold(c *call) (any, error) {
	var body api.BreakRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	if body.Token == 0 || body.Token > fence.MaxToken {
		return nil, api.Invalid("token", body.Token.String(), "the token of the term to end, as GET says it: no other term is touched")
	}
	grace, err := within("grace", body.Grace, 0, 0, store.MaxTTL)
	if err != nil {
		return nil, err
	}
	c.event.Token = body.Token
	c.event.Note = body.Note
	rec, err := drive.Break(c.r.Context(), s.st, c.r.PathValue("name"), drive.EndTerm{Token: body.Token, By: c.by(), Reason: body.Note, Grace: grace})
	c.event.Holder = rec.Owner
	if err != nil {
		return nil, err
	}
	return s.lease(rec), nil
}

// maxPage bounds how many leases one list has.
const maxPage = 10_000

func (s *Server) list(c *call) (any, error) {
	q := c.r.URL.Query()
	prefix, after := q.Get("prefix"), q.Get("after")
	limit := maxPage
	if q.Has("limit") {
		var err error
		text := q.Get("limit")
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return nil, api.Invalid("limit", text, "a number from 1 to "+strconv.Itoa(maxPage))
		}
	}
	if err := c.may(Read, prefix+"*"); err != nil {
		return nil, err
	}
	if err := driver.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	found, err := s.survey(c.r.Context(), prefix, false)
	if err != nil {
		return nil, err
	}
	names := found.after(after)
	answer := api.List{Leases: []api.Lease{}}
	if len(names) > limit {
		names = names[:limit]
		answer.Next = names[limit-1]
	}
	for _, name := range names {
		answer.Leases = append(answer.Leases, s.listed(found, name))
	}
	return answer, nil
}

// listed shows a name that was found.
func (s *Server) listed(found sight, name string) api.Lease {
	if err := found.corrupt[name]; err != nil {
		return api.Lease{Name: name, State: api.StateBad, Problem: s.problem(err), Waiters: s.reg.Queued(name)}
	}
	l := s.lease(found.names[name])
	l.Paused = found.pauses[name]
	l.AddTurns(found.turns[name])
	return l
}

func (s *Server) verify(c *call) (any, error) {
	var body api.VerifyRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	seq, err := s.sequencer(body.Sequencer)
	if err != nil {
		return nil, err
	}
	c.event.Name, c.event.Holder, c.event.Token = seq.Name, seq.Holder, seq.Token
	if keyspace.Reserved(seq.Name) {
		return nil, reserved(seq.Name)
	}
	if err := c.may(Read, seq.Name); err != nil {
		return nil, err
	}
	seen := &witness{Store: store.Confirmed(s.st), key: seq.Name, rec: store.Record{Key: seq.Name}}
	current, err := lease.Source(seen).Current(c.r.Context(), seq.Name)
	if err == nil && current.Check(seq) != nil { // a share of a lock, perhaps
		current, err = lock.Source(seen).Current(c.r.Context(), seq.Name)
	}
	if err != nil {
		return nil, err
	}
	v := api.Verification{Name: seq.Name, Holder: seq.Holder, Token: seq.Token, Current: true}
	if stale := current.Check(seq); stale != nil {
		c.event.stale, v.Current = true, false
		v.Reason = stale.Error()
		now := s.lease(seen.rec)
		v.Now = &now
	}
	return v, nil
}

// witness is a store that remembers what it said of one key: what is shown of a name is then what
// it was judged by.
type witness struct {
	store.Store
	key string
	rec store.Record

	read bool // rec is what the store said, and will be said again
	err  error
}

// Get implements [store.Store].
func (w *witness) Get(ctx context.Context, key string) (store.Record, error) {
	if key != w.key {
		return w.Store.Get(ctx, key)
	}
	if !w.read {
		w.rec, w.err = w.Store.Get(ctx, key)
		w.rec.Key, w.read = key, true
	}
	return w.rec, w.err
}

// owner returns the id under which a holder of that name holds. Two that call themselves the same
// are two.
func owner(name string) string {
	if name == "" {
		name = "http"
	}
	return name + "/" + strings.ToLower(rand.Text()[:13])
}
