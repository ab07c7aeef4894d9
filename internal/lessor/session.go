package lessor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// RenewSession is [Registry.Renew] of a session. left is given the notice on its record, if there
// is one, and returns what is left of it, which is what the grant says and the record keeps: nobody
// knows whether what was told before was heard. It may be called more than once.
//
// Then it looks at the records of what the session keeps, for up to a twelfth of its TTL: the grant
// names what was lost, each time until it is released or granted again. leases, if it isn't nil, is
// what the holder says that the session keeps; otherwise it is what was granted for the session by
// this registry, while that has known it.
func (r *Registry) RenewSession(
	ctx context.Context, key, owner string, token fence.Token, ttl time.Duration, by Proof, left func(notice []byte) []byte,
	leases map[string]fence.Token,
) (Grant, error) {
	g, err := r.renew(ctx, key, owner, token, ttl, by, left)
	switch {
	case errors.Is(err, fence.ErrStale):
		r.keepers.over(owner)
		return g, err
	case err != nil:
		return g, err
	}
	k := r.keepers.renewed(r.st, owner, g.ValidUntil, r.clk.Now())
	if leases != nil {
		k.named(g.Record, leases)
	}
	r.look(ctx, k, &g)
	return g, nil
}

// Keep has the registry know of a lease that a session keeps and that it has not granted itself.
func (r *Registry) Keep(rec store.Record) { r.keepers.enlist(rec) }

// LetGo has it know that nobody has that name any more.
func (r *Registry) LetGo(key string) { r.keepers.letGo(key) }

// OpenSession starts a session for a holder elsewhere: a record that keeps what is acquired under
// its key as long as it is renewed, with [Registry.RenewSession]; [Registry.Release] ends it, and
// frees all that it kept with that one write. It blocks until the store has answered, for 10 s at
// most. After an error that matches [store.ErrUnknownOutcome] it can be called again: what may have
// been opened is closed in the background, or expires.
func (r *Registry) OpenSession(ctx context.Context, owner string, ttl time.Duration, about map[string]string) (Grant, error) {
	if ttl < store.MinTTL || ttl > store.MaxTTL {
		return Grant{}, badTTL(ttl)
	}
	for key := range about {
		if OwnInfo(key) {
			return Grant{}, badInfo(key)
		}
	}
	secret, kept := newSecret("")
	claim := protocol.Claim{Owner: owner, TTL: ttl, Info: info(Request{Info: about}, kept)}
	ctx, cancel := clock.WithTimeout(ctx, r.clk, patience)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	d, err := r.makeSession(ctx, claim)
	for errors.Is(err, store.ErrConflict) { // the record was made too slowly, and is not made twice
		d, err = r.makeSession(ctx, claim)
	}
	if err != nil {
		return Grant{}, fmt.Errorf("open a session: %w", err)
	}
	r.keepers.renewed(r.st, owner, d.Hold.Deadline, r.clk.Now())
	return Grant{Record: d.Hold.Term, Secret: secret, ValidUntil: d.Hold.Deadline}, nil
}

// makeSession writes the record of a new session.
func (r *Registry) makeSession(ctx context.Context, claim protocol.Claim) (drive.Driver, error) {
	d := drive.Open(keyspace.SessionKey(claim.Owner, drive.Nonce()), claim, protocol.Timing{TTL: claim.TTL}.WithDefaults())
	h := &d.Hold
	for env := r.run.Env(); ; {
		doubt := h.InDoubt()
		act := d.Next(env, ctx.Err() == nil)
		switch {
		case h.Phase == protocol.Held:
			return d, nil
		case h.Phase == protocol.Waiting:
			env = r.run.Do(ctx, &d, nil, act)
		case ctx.Err() == nil:
			return d, h.Err
		case doubt:
			r.letGo(d)
			return d, driver.Unknown(h.Key, cmp.Or(h.Err, context.Cause(ctx)))
		default:
			return d, cmp.Or(h.Err, context.Cause(ctx))
		}
	}
}

// letGo lets go in the background of a session that may have been opened.
func (r *Registry) letGo(d drive.Driver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !d.Settle(r.run.Env(), false) {
		return
	}
	r.wg.Go(func() {
		ctx, cancel := clock.WithTimeout(r.ctx, r.clk, patience)
		defer cancel()
		_ = r.run.Finish(ctx, &d, r.run.Env()) // else it expires
	})
}
