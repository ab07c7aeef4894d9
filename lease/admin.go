package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Eviction tells [Break] and [Free] which term to end, and what to write down about it.
type Eviction struct {
	Token fence.Token // of the term to end; another one is never touched
	By    string      // who does it: user@host
	Note  string      // why

	// Grace is how long others leave the name to a holder that does not let go, from when they see the break. 0 means
	// the record's own TTL, which is safe: by then the holder has met the break, or its validity has ended. With less,
	// the old holder may still be working when the next one starts.
	Grace time.Duration
}

func (e Eviction) note() string {
	if e.Note == "" {
		return e.By
	}
	return e.By + ": " + e.Note
}

// Break ends a hold against its holder's will, and returns the record as it is then. The holder can't renew any more; it
// meets the break at its next renewal, which is at most TTL/3 away, loses the lease at once and frees the name when its work
// has stopped. Others may take it when that has happened, or after Grace. If the lease is kept by a session, the session is
// told first; the rest of its leases are not touched. The key of a session is a name, too: it ends with all that it keeps.
//
// The error is a *[fence.StaleError] when e.Token is not the current term; then nothing was changed. Break is tried again while the
// holder renews in between. It blocks until the store answered or ctx is done. After an error that matches [store.ErrUnknownOutcome] it can be called again.
func Break(ctx context.Context, st store.Store, key string, e Eviction) (store.Record, error) {
	return evict(ctx, st, key, e.Token, func(rec store.Record) (store.Record, error) {
		grace, err := tellSession(ctx, st, rec, e)
		if err != nil {
			return store.Record{}, err
		}
		if e.Grace != 0 {
			grace = max(e.Grace, store.MinTTL)
		}
		return protocol.Broken(rec, e.note(), grace, drive.Nonce()), nil
	})
}

// Free frees a name in its holder's stead, at once, and returns the record as it is then. It is for a holder that lets go
// by other means than its [Lease], a script that was given the token, say: whoever calls it vouches that the work has
// stopped. The rest is as with [Break].
func Free(ctx context.Context, st store.Store, key string, e Eviction) (store.Record, error) {
	return evict(ctx, st, key, e.Token, func(rec store.Record) (store.Record, error) {
		if _, err := tellSession(ctx, st, rec, e); err != nil {
			return store.Record{}, err
		}
		return protocol.Freed(rec, protocol.WhyReleased+" by "+e.note(), clock.System().Wall(), drive.Nonce()), nil
	})
}

// evict changes the record while token is its current term.
func evict(ctx context.Context, st store.Store, key string, token fence.Token, change func(store.Record) (store.Record, error)) (store.Record, error) {
	if err := checkName(key); err != nil && OwnerOf(key) == "" {
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

// tellSession puts a notice on the record of the session that keeps rec, if one does, so that its next renewal meets it.
// It returns the TTL that the holder counts on.
func tellSession(ctx context.Context, st store.Store, rec store.Record, e Eviction) (time.Duration, error) {
	if rec.Session == "" {
		return rec.TTL, nil
	}
	session, err := store.Load(ctx, st, rec.Session)
	for err == nil {
		told, needed := drive.Notify(session, rec, e.note(), drive.Nonce())
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
