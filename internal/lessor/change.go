package lessor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// patience bounds the requests of one change, together.
const patience = 10 * time.Second

// attempt is after how long without an answer a request of a change is sent once more.
const attempt = patience / 3

var errRestored = errors.New("its record came back with a restored store, older than it was: acquire the name again")

// renew writes the term once more. left returns what is left to be told of a notice; nil when
// nothing is.
func (n *name) renew(ctx context.Context, owner string, token fence.Token, ttl time.Duration, by Proof, left func(notice []byte) []byte) (Grant, error) {
	d := n.named(owner, token, ttl, by)
	d.Hold.Left = left
	err := n.carry(ctx, &d)
	h := &d.Hold
	cur := h.Seen().Rec
	switch {
	case err != nil:
		return Grant{Record: cur}, err
	case h.Renewed():
		return Grant{Record: h.Term, ValidUntil: h.Deadline, Notice: h.Notice}, nil
	case h.Cause == protocol.CauseBroken:
		err = &lease.LostError{Name: n.key, Token: token, Cause: lease.CauseBroken, Err: errors.New(cur.Note)}
	case h.Restored():
		err = fmt.Errorf("%w: %w", protocol.Stale(cur, token), errRestored)
	default:
		err = protocol.Stale(cur, token)
	}
	return Grant{Record: cur}, err
}

// release ends the term, and begins that of the first of the queue with the same write.
func (n *name) release(ctx context.Context, owner string, token fence.Token, why string, by Proof) (Grant, error) {
	exit := protocol.Exit{Why: why, By: n.r.clk.Now().Add(patience)}
	heir := n.first()
	if heir != nil {
		exit.Heir = &heir.claim
	}
	d := n.named(owner, token, 0, by)
	d.Hold.Stop(n.env(), exit)
	err := n.carry(ctx, &d)
	h := &d.Hold
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return Grant{Record: conflict.Current}, protocol.Stale(conflict.Current, token)
	}
	unknown := errors.Is(err, store.ErrUnknownOutcome)
	if unknown {
		n.past.Orphan(h) // also of the heir's claim
	}
	left := h.Seen().Rec
	if heir == nil || err != nil && !unknown {
		return Grant{Record: left}, err
	}
	// What it has claimed itself was of a version that is gone, or has to be found out anew.
	if n.claimant == heir {
		n.past.Orphan(&n.d.Hold)
		n.forget()
	}
	if unknown {
		return Grant{}, err
	}
	if !n.settle(heir, answer{grant: Grant{Record: left, ValidUntil: heir.until(h.LeftAt)}}) {
		// It has left in the meantime.
		return n.release(ctx, heir.req.Owner, left.Token, protocol.WhyGivenUp, nil)
	}
	return Grant{Record: left}, nil
}

// named returns the driver of the term of a holder elsewhere, if by allows it.
func (n *name) named(owner string, token fence.Token, ttl time.Duration, by Proof) drive.Driver {
	d := drive.Named(n.key, owner, token, ttl, attempt, n.past)
	d.Hold.Allow = by
	return d
}

// carry drives the change of a term, and takes note of the record as it is then, and tells who
// waits for it.
func (n *name) carry(ctx context.Context, d *drive.Driver) error {
	ctx, cancel := clock.WithTimeout(ctx, n.r.clk, patience)
	defer cancel()
	n.unwatch() // what it waits for is about to come from here
	before := n.past.Seen.Rec.Version
	err := n.r.run.Carry(ctx, d)
	seen := d.Hold.Seen()
	if seen.Rec.Version == before {
		return err
	}
	env := n.env()
	n.mu.Lock()
	n.past.Look(&d.Hold)
	n.noted = env.Now
	n.mu.Unlock()
	if n.d != nil && n.d.Hold.Phase == protocol.Waiting {
		n.d.Hold.Read(env, n.key, seen.Rec, nil)
	}
	return err
}
