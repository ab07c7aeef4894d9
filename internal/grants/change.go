package grants

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// patience bounds the requests of one change, together.
const patience = 10 * time.Second

// renew writes the term once more. left returns what is left to be told of a notice; nil when nothing is.
func (n *name) renew(owner string, token fence.Token, ttl time.Duration, by Proof, left func(notice []byte) []byte) (Grant, error) {
	var g Grant
	rec, sent, err := n.alter(owner, token, by, func(cur store.Record) (store.Record, error) {
		switch {
		case cur.Session != "":
			return cur, &store.InvalidError{Field: "Session", Value: cur.Session, Want: "a renewal of the session, which keeps this name"}
		case cur.Mark == store.MarkBroken:
			return cur, &lease.LostError{Key: n.key, Token: token, Cause: lease.Broken, Err: errors.New(cur.Note)}
		case cur.Mark == store.MarkNotice:
			if g.Notice = left(cur.Data); g.Notice == nil {
				cur.Mark, cur.Note = "", ""
			}
			cur.Data = g.Notice
		}
		if ttl != 0 {
			cur.TTL = ttl
		}
		cur.Nonce = newNonce()
		return cur, nil
	})
	g.Record, g.ValidUntil = rec, sent.Add(rules.Timing{TTL: rec.TTL}.WithDefaults().Validity())
	return g, err
}

// release ends the term, and begins that of the first of the queue with the same write.
func (n *name) release(owner string, token fence.Token, why string, by Proof) (Grant, error) {
	var heir *waiter
	var nonce string
	rec, sent, err := n.alter(owner, token, by, func(cur store.Record) (store.Record, error) {
		wall := n.r.clk.Wall()
		heir, nonce = n.first(), newNonce()
		if heir == nil {
			return rules.Freed(cur, why, wall, nonce), nil
		}
		next, err := rules.NextToken(cur.Token, wall)
		return rules.Claimed(cur, heir.claim(), next, why, wall, nonce), err
	})
	unknown := errors.Is(err, store.ErrUnknownOutcome)
	if heir == nil || err != nil && !unknown {
		return Grant{Record: rec}, err
	}
	if n.claimant == heir { // what it has claimed itself was of a version that is gone, or has to be found out anew
		n.orphan(n.hold.Orphans()...)
		n.forget()
	}
	if unknown {
		n.orphan(nonce)
		n.unwatch() // what it waits for may have been missed
		return Grant{}, err
	}
	if !n.settle(heir, answer{grant: Grant{Record: rec, ValidUntil: heir.until(sent)}}) {
		return n.release(heir.req.Owner, rec.Token, rules.WhyGivenUp, nil) // it has left in the meantime
	}
	return Grant{Record: rec}, nil
}

// alter writes what f makes of the record while owner holds it under token, and returns it as it is then, and when the
// write was sent, if by allows it. It begins with the version that was last seen. f sets the nonce; it is called again for another
// version.
func (n *name) alter(owner string, token fence.Token, by Proof, f func(store.Record) (store.Record, error)) (store.Record, clock.Instant, error) {
	ctx, cancel := clock.WithTimeout(n.r.ctx, n.r.clk, patience)
	defer cancel()
	if !n.seen.Known || n.seen.Rec.Owner != owner || n.seen.Rec.Token != token {
		if err := n.load(ctx); err != nil {
			return store.Record{}, 0, err
		}
	}
	for {
		cur := n.seen.Rec
		if cur.Owner != owner || cur.Token != token {
			return cur, 0, &lease.NotCurrentError{Record: cur, Token: token}
		}
		if by != nil {
			if err := by(cur); err != nil {
				return cur, 0, err
			}
		}
		next, err := f(cur)
		if err != nil {
			return cur, 0, err
		}
		n.unwatch() // what it waits for is about to come from here
		sent := n.r.clk.Now()
		if err := n.put(ctx, next); err != nil {
			return n.seen.Rec, 0, err
		}
		if n.seen.Rec.Nonce == next.Nonce {
			return n.seen.Rec, sent, nil
		}
	}
}

// put writes rec, and takes note of the record as it is then: it is another one if the version of rec was not the stored one.
// While it isn't known whether the write has landed, or may yet, it is sent again.
func (n *name) put(ctx context.Context, rec store.Record) error {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		stored, err := n.r.st.Put(ctx, rec)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			n.note(stored)
			return nil
		case errors.As(err, &conflict):
			n.note(conflict.Current)
			return nil
		case errors.Is(err, store.ErrNotFound):
			n.note(store.Record{Key: n.key})
			return nil
		case !errors.Is(err, store.ErrUnknownOutcome):
			return err
		}
		if failed := n.load(ctx); failed != nil {
			return errors.Join(err, failed)
		}
		if n.seen.Rec.Version != rec.Version {
			return nil
		}
		if clock.Sleep(ctx, n.r.clk, pause) != nil {
			return err
		}
	}
}

// load reads the record.
func (n *name) load(ctx context.Context) error {
	rec, err := store.Load(ctx, n.r.st, n.key)
	if err == nil {
		n.note(rec)
	}
	return err
}

// note takes note of the record as it is, and tells the hold.
func (n *name) note(rec store.Record) {
	env := n.env()
	n.mu.Lock()
	n.seen, n.noted = n.seen.Note(rec, env.Now), env.Now
	n.mu.Unlock()
	if n.hold != nil && n.hold.Phase == rules.Waiting {
		n.hold.Read(env, n.key, rec, nil)
	}
}
