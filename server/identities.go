package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The bounds of a window.
const (
	minWindow     = time.Second
	maxWindow     = 30 * 24 * time.Hour
	defaultWindow = 2 * time.Minute
)

// inPool notes the pool of a request, and whether the caller may do that in it.
func (s *Server) inPool(c *call, action Action) (string, error) {
	pool := c.r.PathValue("pool")
	if err := driver.CheckKey(pool); err != nil {
		return "", err
	}
	c.event.Name = pools.Key(pool, "")
	return pool, c.may(action, c.event.Name+"*")
}

func (s *Server) assign(c *call) (any, error) {
	pool, err := s.inPool(c, Assign)
	if err != nil {
		return nil, err
	}
	o, err := s.assignment(c)
	if err != nil {
		return nil, err
	}
	alias := "" // a name has the same value each time
	if o.Name != "" {
		alias = pools.Key(pool, "") + "\x00" + o.Name
	}
	asked, err := s.tally.reserve(c.payer, "", alias, share(false, pools.Key(pool, o.Name), o.Info))
	if err != nil {
		return nil, err
	}
	a, err := inTime(c, pool, func(ctx context.Context) (identity.Assignment, error) {
		return identity.Assign(ctx, s.manager, pool, o)
	})
	if err != nil {
		s.tally.giveUp(asked)
		return nil, err
	}
	s.tally.keep(asked, a.Record)
	s.reg.Keep(a.Record)
	e := identity.Entry{
		Value: a.Value, Number: a.Number, Name: a.Name, Assigned: o.Session == "", Floor: a.Floor, Ceiling: a.Ceiling, Record: a.Record,
	}
	e.Record.Age = 0 // it was written just now
	answer := &api.Assigned{Identity: s.shownIdentity(pool, e), Sequencer: a.Sequencer().String(), Renewed: a.Renewed}
	if answer.Sequencer, err = s.signed(a.Sequencer()); err != nil {
		return nil, err
	}
	if !a.Renewed {
		c.status = http.StatusCreated
	}
	c.event.Name, c.event.Holder, c.event.Token = a.Record.Key, a.Record.Owner, a.Record.Token
	c.w.Header().Set(api.HeaderToken, a.Record.Token.String())
	c.w.Header().Set(fence.Header, answer.Sequencer)
	return answer, nil
}

// requestName begins the names of those who have a value by a request with an Idempotency-Key, and
// no name of their own.
const requestName = "request:"

// assignment reads what a caller wants.
func (s *Server) assignment(c *call) (o identity.AssignOptions, err error) {
	var body api.IdentityRequest
	if err := c.read(&body); err != nil {
		return o, err
	}
	o = identity.AssignOptions{
		Options: identity.Options{Values: identity.Values{Range: body.Range, Names: body.Names, Prefix: body.Prefix, Bits: body.Bits}, Name: body.As},
		Value:   body.Value, Session: body.Session, Info: body.Info,
	}
	if err := o.Values.Check(); err != nil {
		return o, api.NewProblem(api.CodeInvalid, "%v", err)
	}
	if body.Layout != "" {
		if o.Layout, err = layoutOf(body.Layout); err != nil {
			return o, err
		}
	}
	if o.TTL, err = within("ttl", body.TTL, s.opts.MaxTTL, store.MinTTL, s.opts.MaxTTL); err != nil {
		return o, err
	}
	if o.Window, err = within("window", body.Window, defaultWindow, minWindow, maxWindow); err != nil {
		return o, err
	}
	if strings.HasPrefix(o.Name, requestName) {
		return o, api.Invalid("as", o.Name, "a name that does not begin with "+requestName+": those are of requests with an Idempotency-Key")
	}
	if id := c.requestID(); id != "" && o.Name == "" {
		sum := sha256.Sum256([]byte(id)) // the name is shown, the key is its caller's
		o.Name = requestName + hex.EncodeToString(sum[:16])
	}
	for key := range body.Info {
		if lessor.OwnInfo(key) {
			return o, api.Invalid("info", key, "keys that do not begin with a dot: those are Leasehold's own")
		}
	}
	if o.Name != "" {
		if err := driver.CheckKey(o.Name); err != nil {
			return o, api.Invalid("as", o.Name, "at most 255 bytes of printable text")
		}
	}
	if body.Session != "" {
		_, err = s.sessionRecord(c, body.Session)
		return o, err
	}
	o.Holder = owner(s.called(c, strings.TrimPrefix(body.As, "/")))
	return o, nil
}

// shownIdentity is a value that somebody has.
func (s *Server) shownIdentity(pool string, e identity.Entry) api.Identity {
	rec := e.Record
	id := api.IdentityOf(pool, e)
	id.State, id.Info = state(rec), lessor.Shown(rec.Info)
	if e.Assigned {
		ttl, left := api.Seconds(rec.TTL), api.Seconds(max(rec.TTL-rec.Age, 0))
		id.TTL, id.ExpiresIn = &ttl, &left
	}
	if rec.Session == "" && s.obs.Saw(rec).Standing == lease.NameExpired {
		id.State = api.StateExpired
	}
	return id
}

func (s *Server) identities(c *call) (any, error) {
	pool, err := s.inPool(c, Read)
	if err != nil {
		return nil, err
	}
	of, entries, err := identity.List(c.r.Context(), s.st, pool)
	if err != nil {
		return nil, missingPool(pool, err)
	}
	answer := api.Identities{DeclaredPool: api.PoolOf(of), Identities: make([]api.Identity, len(entries))}
	held := len(entries)
	answer.Held = &held
	for i, e := range entries {
		answer.Identities[i] = s.shownIdentity(pool, e)
	}
	return answer, nil
}

// missingPool is the problem of a pool that is only looked at.
func missingPool(pool string, err error) error {
	if errors.Is(err, identity.ErrUndeclared) {
		return api.NewProblem(api.CodeNotFound, "there is no pool %s: the first POST that says what its values are makes it", pool)
	}
	return err
}

// widen adds values to a pool. Who may assign values of it may do so, as such a caller says what
// its values are when it is new.
func (s *Server) widen(c *call) (any, error) {
	pool, err := s.inPool(c, Assign)
	if err != nil {
		return nil, err
	}
	var body api.PoolRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	values := identity.Values{Range: body.Range, Names: body.Names, Prefix: body.Prefix, Bits: body.Bits}
	if body.Range == "" && len(body.Names) == 0 && body.Prefix == "" && body.Bits == 0 {
		err = errors.New(`the values are missing: "range", "names", or "prefix" with "bits", with all that the pool has`)
	} else {
		err = values.Check()
	}
	if err != nil {
		return nil, api.NewProblem(api.CodeInvalid, "%v", err)
	}
	got, err := inTime(c, pool, func(ctx context.Context) (identity.Declared, error) {
		return identity.Widen(ctx, s.st, pool, values)
	})
	if errors.Is(err, identity.ErrUndeclared) {
		return nil, missingPool(pool, err)
	}
	if err != nil {
		return nil, err
	}
	return api.PoolOf(got), nil
}

// unassign gives a value back. It is named by its term, as any lease is, or by the name that has
// it.
func (s *Server) unassign(c *call) (any, error) {
	pool, err := s.inPool(c, Assign)
	if err != nil {
		return nil, err
	}
	value, q := c.r.PathValue("value"), c.r.URL.Query()
	c.event.Name = pools.Key(pool, value)
	o := identity.ReleaseOptions{Value: value, Name: q.Get("as"), By: c.caller.Name(), Clock: s.clk}
	if o.By == "" {
		o.By = c.event.Remote
	}
	if o.Name == "" {
		c.r.SetPathValue("name", c.event.Name)
		if _, o.Token, err = s.term(c); err != nil {
			return nil, orAs(err)
		}
	}
	if text := q.Get("used"); text != "" {
		if o.Used, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, api.Invalid("used", text, "a time such as 2026-01-02T15:04:05Z")
		}
	}
	if _, err = identity.Release(c.r.Context(), s.st, pool, o); err == nil {
		s.tally.over(c.event.Name)
		s.reg.LetGo(c.event.Name)
	}
	return nil, missingPool(pool, err)
}

// orAs adds, to the problem of a term that is missing, that a name will do.
func orAs(err error) error {
	if p := api.ProblemOf(err); p.Field == "holder" {
		return api.Invalid("as", "", "the name that has the value, or the term: the header "+fence.Header)
	}
	return err
}
