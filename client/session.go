package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
)

// SessionOptions of [Client.OpenSession].
type SessionOptions struct {
	// What the holder calls itself: by default what the server knows the caller as.
	Holder string
	// How long it, and all that it keeps, lasts after its last renewal; the server's default if 0.
	TTL  time.Duration
	Info map[string]string // for people
}

// OpenSession opens a session. What is acquired with its ID lasts as long as the session is
// renewed. A session that was opened by a try whose answer was lost keeps nothing, and expires.
func (c *Client) OpenSession(ctx context.Context, opts SessionOptions) (Session, error) {
	q := request{method: http.MethodPost, path: "/v1/sessions"}
	return c.session(ctx, effort{what: "open a session", write: true}, q, func(time.Duration) any {
		return api.SessionRequest{Holder: opts.Holder, TTL: seconds(opts.TTL), Info: opts.Info}
	})
}

// RenewSession renews a session and all that it keeps, with another TTL from now on if ttl isn't 0.
// It returns the renewed session. The error is a *[fence.StaleError] when the session is over,
// and all that it kept.
//
// The server looks at the records of the leases that the session keeps. Those are the ones that
// this client acquired under it and has not released. If there are more than 1,024, they are the
// ones that the server granted. Lost of the answer has those that an outsider deleted, edited or
// restored: see [Session.Check].
func (c *Client) RenewSession(ctx context.Context, s Session, ttl time.Duration) (Session, error) {
	renewed, err := c.session(ctx, effort{what: s.ID, write: true}, s.request(http.MethodPut), func(time.Duration) any {
		return api.SessionRenewal{TTL: seconds(ttl), Leases: c.kept.named(s)}
	})
	if errors.Is(err, fence.ErrStale) {
		c.kept.over(s.ID)
	}
	renewed.Secret = s.Secret // which only the first answer has
	return renewed, err
}

func (c *Client) session(ctx context.Context, e effort, q request, body func(time.Duration) any) (Session, error) {
	var w api.Session
	sentAt := c.clk.Now()
	err := c.answered(ctx, e, q, func(wait time.Duration) any {
		sentAt = c.clk.Now() // the answer to this one is what counts
		return body(wait)
	}, &w)
	if err != nil {
		return Session{}, err
	}
	s := c.sessionOf(w, sentAt)
	c.kept.renewed(s, c.clk.Now())
	return s, nil
}

// CloseSession ends a session, and frees all that it keeps. It is sent even if ctx is done; it
// blocks for [Retry.For] at most. The error is a *[fence.StaleError] when the session was over
// already.
func (c *Client) CloseSession(ctx context.Context, s Session) error {
	over := func(err error) bool { return errors.Is(err, fence.ErrStale) }
	e := effort{what: s.ID, write: true, settled: over}
	c.kept.over(s.ID)
	return c.answered(context.WithoutCancel(ctx), e, s.request(http.MethodDelete), nil, nil)
}

// Check returns nil while the last answer of the server says that g, which the session keeps, is
// valid. Otherwise it returns a *[lease.LostError] with the reason: the session is over, its
// renewal found the lease's record gone or another's, or an operator broke the lease. It reads the
// clock, and asks no server: call it on the result of the last renewal.
func (s Session) Check(g Grant) error {
	lost := &lease.LostError{Name: g.Name, Token: g.Token}
	switch loss, gone := s.Lost[g.Name]; {
	case g.Session != s.ID:
		lost.Cause, lost.Err = lease.CauseTaken, errors.New("another session keeps it")
	case gone && loss.Token == g.Token:
		lost.Cause, lost.Err = loss.Cause, errors.New(loss.Reason)
	case s.Broken[g.Name] == g.Token:
		lost.Cause = lease.CauseBroken
	case s.Left() == 0:
		lost.Cause = lease.CauseExpired
	default:
		return nil
	}
	return lost
}

// request is one about the session.
func (s Session) request(method string) request {
	q := request{method: method, path: sessionPath(s.ID), header: http.Header{}}
	s.prove(q.header)
	return q
}

// prove adds the secret of the session, if it is one, to a request that uses it.
func (s Session) prove(h http.Header) {
	if s.ID != "" {
		h.Set(api.HeaderSecret, string(s.Secret))
	}
}

func sessionPath(id string) string { return "/v1/sessions/" + segment(id) }
