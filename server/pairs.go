package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// switchWait is how long a switchover may take unless the request says otherwise.
const switchWait = 30 * time.Second

// listPairs answers with the pairs in the store that the caller may read. It asks no instances.
func (s *Server) listPairs(c *call) (any, error) {
	answer := api.Pairs{Pairs: []api.Pair{}}
	for rec, err := range s.st.List(c.r.Context(), pairs.Calls) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
		name, ok := strings.CutPrefix(rec.Key, pairs.Calls)
		if !ok || driver.CheckKey(name) != nil || keyspace.Reserved(name) || !c.caller.May(Read, name) {
			continue
		}
		heard(c.r.Context())
		p, err := s.pair(c.r.Context(), name, false)
		switch {
		case errors.Is(err, store.ErrCorrupt):
			continue // the list of names says so
		case err != nil:
			return nil, err
		}
		answer.Pairs = append(answer.Pairs, p)
	}
	slices.SortFunc(answer.Pairs, func(a, b api.Pair) int { return cmp.Compare(a.Lease, b.Lease) })
	return answer, nil
}

// showPair answers how a pair stands, and has its instances asked if that is some time ago.
func (s *Server) showPair(c *call) (any, error) {
	name := c.r.PathValue("name")
	if err := s.known(c.r.Context(), name); err != nil {
		return nil, err
	}
	return s.pair(c.r.Context(), name, true)
}

// pair returns how a pair stands, with what its instances said last, and has them asked again if
// that is wanted.
func (s *Server) pair(ctx context.Context, name string, ask bool) (api.Pair, error) {
	rec, err := store.Load(ctx, s.st, name)
	if err != nil {
		return api.Pair{}, err
	}
	seen, err := s.obs.Of(ctx, rec)
	if err != nil {
		return api.Pair{}, err
	}
	if ask {
		s.rolls.look(s, name, rec)
	}
	instances, asked, term := s.rolls.known(name)
	if term != rec.Token || rec.Owner == "" {
		instances = pairs.Outdated(rec, instances)
	}
	p := pairs.Of(seen, pairs.Times{}, instances)
	if !asked.IsZero() {
		p.Asked = &asked
	}
	return p, nil
}

// known refuses a name that no instance has ever looked at: a hold must not end a lease of another
// kind.
func (s *Server) known(ctx context.Context, name string) error {
	rec, err := store.Load(ctx, s.st, pairs.Calls+name)
	if err == nil && rec.Version == "" {
		err = api.NewProblem(api.CodeNoPair, "%s: no instance of leasehold standby has ever looked at this lease in the server's store", name)
	}
	return err
}

// operator returns what acts on the pair in the path, and on the term of that token, if it isn't 0.
func (s *Server) operator(c *call, token fence.Token) (admiral.Operator, error) {
	name := c.r.PathValue("name")
	c.event.Token = token
	if token > fence.MaxToken {
		return admiral.Operator{}, api.Invalid("token", token.String(), "the token of the term to end, or none for any")
	}
	instances, _, _ := s.rolls.known(name)
	// No more of the configuration is needed than the TTL.
	times := pairs.Times{}.Known(instances)
	return admiral.Operator{
		Store: s.st, Clock: s.clk, By: c.by(), Term: token,
		Config: admiral.Config{LeaseName: name, WaitTime: times.TTL, FailureThreshold: 1},
	}, s.known(c.r.Context(), name)
}

// switchover has the active instance hand over to another. It answers when that one has confirmed
// it, or when the wait is over.
func (s *Server) switchover(c *call) (any, error) {
	var body api.SwitchoverRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	if body.To == "" {
		return nil, api.Invalid("to", "", "the podIdentifier of the instance that is to be active, as GET lists them")
	}
	wait, err := within("wait", body.Wait, switchWait, time.Second, s.opts.MaxWait)
	if err != nil {
		return nil, err
	}
	leave, err := s.enter(c, wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.event.Note = "to " + body.To
	op, err := s.operator(c, body.Token)
	if err != nil {
		return nil, err
	}
	begun := s.clk.Now()
	c.patience.extend(wait)
	did, err := op.Switchover(c.r.Context(), body.To, wait)
	c.event.Waited, c.event.Holder = s.clk.Now().Sub(begun), did.From.Owner
	if err != nil {
		return nil, err
	}
	c.ordered, c.event.Token = true, did.From.Token
	if did.From.Token != did.To.Token {
		c.event.reason = "handed_over"
	}
	return s.pair(c.r.Context(), op.Config.LeaseName, true)
}

// holdPair has every instance be passive until resumePair. The server notes when the instance that
// was active has certainly stopped, whether or not the request waits for it.
func (s *Server) holdPair(c *call) (any, error) {
	var body api.HoldRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	if body.Reason == "" {
		return nil, api.Invalid("reason", "", "why, for people who wonder that nobody is active")
	}
	wait, leave, err := s.enterFor(c, body.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.event.Note = body.Reason
	op, err := s.operator(c, body.Token)
	if err != nil {
		return nil, err
	}
	before, err := op.Record(c.r.Context())
	if err != nil {
		return nil, err
	}
	c.event.Holder = before.Owner
	held, err := op.Hold(c.r.Context(), body.Reason)
	if err != nil {
		return nil, err
	}
	c.ordered, c.event.reason = true, "paused"
	settled := make(chan struct{})
	if !s.background.start(func() {
		defer close(settled)
		_ = op.Settle(s.closing, held) // a hold that isn't settled is resumed after the TTL
	}) {
		close(settled)
	}
	if wait > 0 && !op.Settled(held) {
		begun := s.clk.Now()
		c.patience.extend(wait)
		ctx, cancel := s.until(c.r.Context(), wait)
		defer cancel()
		select {
		case <-settled:
		case <-ctx.Done():
		}
		c.event.Waited = s.clk.Now().Sub(begun)
	}
	return s.pair(c.r.Context(), op.Config.LeaseName, true)
}

// resumePair ends a hold.
func (s *Server) resumePair(c *call) (any, error) {
	if err := c.read(&struct{}{}); err != nil {
		return nil, err
	}
	op, err := s.operator(c, 0)
	if err != nil {
		return nil, err
	}
	if _, _, err := op.Resume(c.r.Context()); err != nil {
		return nil, err
	}
	c.ordered = true
	return s.pair(c.r.Context(), op.Config.LeaseName, true)
}

// pairProblem is the problem of an order to a pair that can't be carried out; nil for any other
// error.
func pairProblem(err error) *api.Problem {
	switch {
	case errors.Is(err, admiral.ErrNobody):
		return api.NewProblem(api.CodeNobodyActive, "%v", err)
	case errors.Is(err, admiral.ErrForeign):
		return api.NewProblem(api.CodeForeign, "%v", err)
	case errors.Is(err, admiral.ErrNotHeld):
		return api.NewProblem(api.CodeNotHeldPassive, "%v", err)
	case errors.Is(err, admiral.ErrNoTTL):
		return api.NewProblem(api.CodeNoTTL, "%v", err)
	case errors.As(err, new(*admiral.AbsentError)):
		return api.NewProblem(api.CodeNoInstance, "%v", err)
	}
	return nil
}
