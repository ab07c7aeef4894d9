package grants

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// RenewSession is [Registry.Renew] of a session. left is given the notice on its record, if there is one, and returns what is left of it,
// which is what the grant says and the record keeps: nobody knows whether what was told before was heard. It may be called more
// than once.
func (r *Registry) RenewSession(
	ctx context.Context, key, owner string, token fence.Token, ttl time.Duration, by Proof, left func(notice []byte) []byte,
) (Grant, error) {
	return r.renew(ctx, key, owner, token, ttl, by, left)
}

// OpenSession starts a session for a holder elsewhere: a record that keeps what is acquired under its key as long as it is
// renewed, with [Registry.RenewSession]; [Registry.Release] ends it, and frees all that it kept with that one write. After an error
// that matches [store.ErrUnknownOutcome] it can be called again: what may have been opened expires.
func (r *Registry) OpenSession(ctx context.Context, owner string, ttl time.Duration, about map[string]string) (Grant, error) {
	if ttl < store.MinTTL || ttl > store.MaxTTL {
		return Grant{}, badTTL(ttl)
	}
	wall, sent := r.clk.Wall(), r.clk.Now()
	token, err := rules.NextToken(0, wall)
	if err != nil {
		return Grant{}, err
	}
	for key := range about {
		if OwnInfo(key) {
			return Grant{}, badInfo(key)
		}
	}
	secret, kept := newSecret("")
	claim := rules.Claim{Owner: owner, TTL: ttl, Info: info(Request{Info: about}, kept)}
	rec := rules.Claimed(store.Record{Key: lease.SessionKey(owner)}, claim, token, "", wall, drive.Nonce())
	if rec, err = r.st.Put(ctx, rec); err != nil {
		return Grant{}, fmt.Errorf("open a session: %w", err)
	}
	return Grant{Record: rec, Secret: secret, ValidUntil: sent.Add(rules.Timing{TTL: ttl}.WithDefaults().Validity())}, nil
}
