package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/grants"
	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func (s *Server) openSession(c *call) (any, error) {
	var body wire.SessionRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	ttl, err := within("ttl", body.TTL, s.opts.TTL, store.MinTTL, s.opts.MaxTTL)
	if err != nil {
		return nil, err
	}
	g, err := s.reg.OpenSession(c.r.Context(), owner(s.called(c, body.Holder)), ttl, body.Info)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return s.session(c, g)
}

func (s *Server) session(c *call, g grants.Grant) (*wire.Session, error) {
	rec := g.Record
	answer := &wire.Session{
		Session: rec.Key, Holder: rec.Owner, Token: rec.Token, TTL: wire.Seconds(rec.TTL),
		ValidFor: wire.Seconds(s.left(g)), RenewEvery: wire.Seconds(rec.TTL / renewals),
	}
	c.event.Name, c.event.Holder, c.event.Token = rec.Key, rec.Owner, rec.Token
	if g.Notice == nil {
		return answer, nil
	}
	var notice struct{ Broken map[string]fence.Token }
	if err := json.Unmarshal(g.Notice, &notice); err != nil {
		return nil, store.Corrupt(rec.Key, err)
	}
	answer.Broken = notice.Broken
	return answer, nil
}

// ownerOf returns the owner of a session that lives, as far as its record says.
func (s *Server) ownerOf(c *call, id string) (string, error) {
	rec, err := s.sessionRecord(c, id)
	if err != nil {
		return "", err
	}
	return rec.Owner, nil
}

func (s *Server) sessionRecord(c *call, id string) (store.Record, error) {
	if lease.OwnerOf(id) == "" {
		return store.Record{}, wire.Invalid("session", id, "the id of a session, as POST /v1/sessions gave it")
	}
	rec, err := store.Load(c.r.Context(), s.st, id)
	if err == nil && rec.Owner == "" {
		err = &lease.NotCurrentError{Record: rec}
	}
	return rec, err
}

func (s *Server) renewSession(c *call) (any, error) {
	ttl, err := s.renewal(c)
	if err != nil {
		return nil, err
	}
	rec, err := s.sessionRecord(c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	g, err := s.reg.Renew(c.r.Context(), rec.Key, rec.Owner, rec.Token, ttl)
	if err != nil {
		return nil, err
	}
	return s.session(c, g)
}

func (s *Server) closeSession(c *call) (any, error) {
	rec, err := s.sessionRecord(c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.event.Name, c.event.Holder, c.event.Token = rec.Key, strings.TrimSpace(rec.Owner), rec.Token
	_, err = s.reg.Release(c.r.Context(), rec.Key, rec.Owner, rec.Token, "closed")
	return nil, err
}
