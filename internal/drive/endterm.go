package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// EndTerm is lease.EndTerm, for callers that have a store and no manager.
type EndTerm struct {
	Token  fence.Token
	By     string
	Reason string
	Grace  time.Duration
}

func (e EndTerm) note() string {
	if e.Reason == "" {
		return e.By
	}
	return e.By + ": " + e.Reason
}

// Break ends a term against its holder's will, and returns the record as it is then; see
// lease.Manager.Break.
func Break(ctx context.Context, st store.Store, key string, e EndTerm) (store.Record, error) {
	return endTerm(ctx, st, key, e.Token, func(rec store.Record) (store.Record, error) {
		grace, err := tellSession(ctx, st, rec, e)
		if err != nil {
			return store.Record{}, err
		}
		if e.Grace != 0 {
			grace = max(e.Grace, store.MinTTL)
		}
		return protocol.Broken(rec, e.note(), grace, Nonce()), nil
	})
}

// Free frees a name in its holder's stead, and returns the record as it is then; see
// lease.Manager.Free.
func Free(ctx context.Context, st store.Store, clk clock.Clock, key string, e EndTerm) (store.Record, error) {
	return endTerm(ctx, st, key, e.Token, func(rec store.Record) (store.Record, error) {
		if _, err := tellSession(ctx, st, rec, e); err != nil {
			return store.Record{}, err
		}
		return protocol.Freed(rec, protocol.WhyReleased+" by "+e.note(), clk.Wall(), Nonce()), nil
	})
}

// endTerm changes the record while token is its current term.
func endTerm(ctx context.Context, st store.Store, key string, token fence.Token, change func(store.Record) (store.Record, error)) (store.Record, error) {
	if err := keyspace.CheckName(key); err != nil && keyspace.OwnerOf(key) == "" {
		return store.Record{}, err
	}
	rec, err := store.Load(ctx, st, key)
	for err == nil {
		if rec.Owner == "" || rec.Token != token {
			return rec, protocol.Stale(rec, token)
		}
		var next store.Record
		if next, err = change(rec); err != nil {
			break
		}
		var conflict *store.ConflictError
		next, err = st.Put(ctx, next)
		if !errors.As(err, &conflict) {
			return next, err
		}
		rec, err = conflict.Current, nil
	}
	return rec, err
}

// tellSession puts a notice on the record of the session that keeps rec, if one does, so that its
// next renewal meets it. It returns the TTL that the holder counts on.
func tellSession(ctx context.Context, st store.Store, rec store.Record, e EndTerm) (time.Duration, error) {
	if rec.Session == "" {
		return rec.TTL, nil
	}
	session, err := store.Load(ctx, st, rec.Session)
	for err == nil {
		told, needed := Notify(session, rec, e.note(), Nonce())
		if !needed {
			break
		}
		var conflict *store.ConflictError
		_, err = st.Put(ctx, told)
		if !errors.As(err, &conflict) {
			break
		}
		session, err = conflict.Current, nil
	}
	if err != nil {
		return 0, fmt.Errorf("tell the session that keeps %s: %w", rec.Key, err)
	}
	return max(rec.TTL, session.TTL), nil
}
