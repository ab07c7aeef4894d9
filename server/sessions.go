package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// infoCaller is the key of a session's info that says who opened it. Its id is no secret.
const infoCaller = "caller"

// mayUse reports whether the caller may use a session that opener opened: its own, if there is
// anything that it may keep with it; or without a name, who may acquire everything.
func (c *call) mayUse(opener string) error {
	switch who := c.caller.Name(); {
	case who == "":
		return c.may(Acquire, "*")
	case who != opener:
		return api.NewProblem(api.CodeForbidden, "%s may not use a session that it has not opened", who)
	case !c.caller.May(Acquire, "") && !c.caller.May(Assign, ""):
		return api.NewProblem(api.CodeForbidden, "%s may not use a session: there is nothing that it may acquire or assign", who)
	}
	return nil
}

func (s *Server) openSession(c *call) (any, error) {
	var body api.SessionRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	ttl, err := within("ttl", body.TTL, s.opts.TTL, store.MinTTL, s.opts.MaxSessionTTL)
	if err != nil {
		return nil, err
	}
	who := c.caller.Name()
	if err := c.mayUse(who); err != nil {
		return nil, err
	}
	info := map[string]string{}
	maps.Copy(info, body.Info)
	delete(info, infoCaller) // it is not for the request to say
	if who != "" {
		info[infoCaller] = who
	}
	asked, err := s.tally.reserve(c.payer, "", "", share(true, "", info))
	if err != nil {
		return nil, err
	}
	g, err := s.reg.OpenSession(c.r.Context(), owner(s.called(c, body.Holder)), ttl, info)
	if err != nil {
		s.tally.giveUp(asked)
		return nil, err
	}
	s.tally.keep(asked, g.Record)
	c.status = http.StatusCreated
	answer, err := s.session(c, g)
	if err == nil {
		answer.Secret = g.Secret
		c.w.Header().Set(api.HeaderSecret, g.Secret)
	}
	return answer, err
}

func (s *Server) session(c *call, g lessor.Grant) (*api.Session, error) {
	rec := g.Record
	answer := &api.Session{
		Session: rec.Key, Holder: rec.Owner, Token: rec.Token, TTL: api.Seconds(rec.TTL),
		ValidFor: validFor(g, s.clk.Now()), RenewEvery: api.Seconds(rec.TTL / renewals),
	}
	c.event.Name, c.event.Holder, c.event.Token = rec.Key, rec.Owner, rec.Token
	answer.LookedAt = &g.LookedAt
	s.margins.granted(g, c.came)
	for _, name := range slices.Sorted(maps.Keys(g.Lost)) {
		loss := g.Lost[name]
		if answer.Lost == nil {
			answer.Lost = map[string]api.Loss{}
		}
		answer.Lost[name] = api.Loss{Token: loss.Token, Cause: api.Cause(loss.Cause), Reason: loss.Err.Error()}
		if len(c.event.Note) < maxNote {
			c.event.Note += fmt.Sprintf("%s (token %d) is lost: %v; ", name, loss.Token, loss.Err)
		}
		s.tally.lost(name, rec.Key)
	}
	if g.Notice == nil {
		return answer, nil
	}
	var err error
	if answer.Broken, err = drive.ReadNotice(g.Notice); err != nil {
		return nil, driver.Corrupt(rec.Key, err)
	}
	return answer, nil
}

// maxNote is from how many bytes on an event tells of no more losses.
const maxNote = 1024

// sessionRenewal reads what a renewal asks for: a TTL, 0 for the one that there is, and what its
// session keeps. A caller names what it may acquire or be assigned.
func (s *Server) sessionRenewal(c *call) (ttl time.Duration, leases map[string]fence.Token, err error) {
	var body api.SessionRenewal
	if err := c.read(&body); err != nil {
		return 0, nil, err
	}
	if ttl, err = within("ttl", body.TTL, 0, store.MinTTL, s.opts.MaxSessionTTL); err != nil {
		return 0, nil, err
	}
	if n := len(body.Leases); n > api.MaxNamed {
		return 0, nil, api.Invalid("leases", strconv.Itoa(n), fmt.Sprintf("at most %d names", api.MaxNamed))
	}
	for name := range body.Leases {
		if keyspace.Reserved(name) || driver.CheckKey(name) != nil {
			return 0, nil, api.Invalid("leases", name, "names that this session has acquired")
		}
		if err := c.may(Acquire, name); err != nil && c.may(Assign, name) != nil {
			return 0, nil, err
		}
	}
	return ttl, body.Leases, nil
}

// unreleased returns what is left of a notice: the leases that the session still holds. It is told
// of each until it has let go, for an answer may be lost.
func (s *Server) unreleased(ctx context.Context, owner string, text []byte) []byte {
	broken, err := drive.ReadNotice(text)
	if err != nil {
		return text // the answer says so
	}
	for name, token := range broken {
		rec, err := store.Load(ctx, s.st, name)
		if err == nil && (rec.Owner != owner || rec.Token != token) {
			delete(broken, name)
		}
	}
	return drive.WriteNotice(broken)
}

// ownerOf returns the owner of a session that lives, as far as its record says, and that the
// request has the secret of.
func (s *Server) ownerOf(c *call, id string) (string, error) {
	rec, err := s.sessionRecord(c, id)
	if err != nil {
		return "", err
	}
	return rec.Owner, nil
}

func (s *Server) sessionRecord(c *call, id string) (store.Record, error) {
	if keyspace.OwnerOf(id) == "" {
		return store.Record{}, api.Invalid("session", id, "the id of a session, as POST /v1/sessions gave it")
	}
	rec, err := store.Load(c.r.Context(), s.st, id)
	if err == nil && rec.Owner == "" {
		err = protocol.Stale(rec, rec.Token)
	}
	if err == nil {
		err = c.mayUse(rec.Info[infoCaller])
	}
	if err == nil {
		err = c.proof()(rec)
	}
	return rec, err
}

func (s *Server) renewSession(c *call) (any, error) {
	c.came = s.clk.Now()
	ttl, leases, err := s.sessionRenewal(c)
	if err != nil {
		return nil, err
	}
	rec, err := s.sessionRecord(c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	left := func(notice []byte) []byte { return s.unreleased(c.r.Context(), rec.Owner, notice) }
	g, err := s.reg.RenewSession(c.r.Context(), rec.Key, rec.Owner, rec.Token, ttl, c.proof(), left, leases)
	if err != nil {
		return nil, err
	}
	s.renewed(c, g)
	return s.session(c, g)
}

func (s *Server) closeSession(c *call) (any, error) {
	rec, err := s.sessionRecord(c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.event.Name, c.event.Holder, c.event.Token = rec.Key, rec.Owner, rec.Token
	_, err = s.reg.Release(c.r.Context(), rec.Key, rec.Owner, rec.Token, "closed", c.proof())
	if err == nil {
		s.tally.over(rec.Key)
		s.margins.over(rec.Key)
	}
	return nil, err
}
