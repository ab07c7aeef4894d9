package lessor

import (
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// again grants the term that the record shows to a request that is sent again.
func (n *name) again() bool {
	w, rec := n.claimant, n.d.Hold.Seen().Rec
	if w.req.ID == "" || rec.Info[requestInfo] != idDigest(w.req.ID) {
		return false
	}
	if _, ok := w.secretOf(rec); !ok {
		return false // what it says it is was not written by a registry: it is somebody else's
	}
	n.look()
	g, err := n.granted(w, rec)
	switch unknown := errors.Is(err, store.ErrUnknownOutcome); {
	case unknown && w.req.Wait == 0:
		n.settle(w, answer{err: err})
		n.forget()
		return true
	case unknown:
		n.do(protocol.Action{Kind: protocol.Sleep, Until: n.r.clk.Now().Add(attempt)})
		return true
	case err != nil: // the next step sees what the record has become, if that is known now
		return n.d.Hold.Seen().Rec.Version != rec.Version
	}
	n.settle(w, answer{grant: g})
	n.forget()
	return true
}

// granted returns the term that w was granted before: renewed, unless a session keeps it, whose
// renewals count for it.
func (n *name) granted(w *waiter, rec store.Record) (Grant, error) {
	if rec.Session == "" {
		return n.renew(n.r.ctx, rec.Owner, rec.Token, w.req.TTL, nil, untouched)
	}
	if rec.Session != w.req.Session || rec.Intervention != "" {
		return Grant{}, protocol.Stale(rec, rec.Token)
	}
	return n.adopt(rec)
}

// adopt writes a term that a session keeps once more. What was read may be a claim that a failover
// takes away; or the server that made it, for a client which has not heard of that, is about to let
// go of it. Under a nonce from here it is neither.
func (n *name) adopt(rec store.Record) (Grant, error) {
	n.unwatch() // what it waits for is about to come from here
	rec.Nonce = drive.Nonce()
	now := n.r.clk.Now()
	act := protocol.Action{Kind: protocol.Write, Key: n.key, Rec: rec, Until: now.Add(patience), Asked: now, Again: now.Add(attempt)}
	kept, err := n.r.run.Request(n.r.ctx, act, nil)
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		n.d.Hold.Read(n.env(), n.key, conflict.Current, nil)
		n.look()
		return Grant{}, protocol.Stale(conflict.Current, rec.Token)
	}
	if err != nil {
		return Grant{}, driver.Unknown(n.key, err) // whether the claim that was read lasts
	}
	return Grant{Record: kept, ValidUntil: clock.NoDeadline}, nil
}
