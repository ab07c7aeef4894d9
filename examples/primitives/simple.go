package primitives

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// ErrHeld says that somebody else has the lock, ErrNotHeld that the caller doesn't have it any
// more.
var (
	ErrHeld    = errors.New("lock is held")
	ErrNotHeld = errors.New("lock is not held")
)

// SimpleLock takes a name for me, once and for all.
func SimpleLock(ctx context.Context, st store.Store, name, me string) (token fence.Token, err error) {
	err = store.Update(ctx, st, name, func(rec *store.Record) (write bool, err error) {
		if rec.Owner != "" {
			return false, fmt.Errorf("%s: %w by %s", name, ErrHeld, rec.Owner)
		}
		rec.Owner, rec.Token, rec.TTL = me, rec.Token+1, store.MaxTTL // a record has to have one
		token = rec.Token
		return true, nil
	})
	return token, err
}

// SimpleUnlock gives it back: this very term, and no later one. The record stays, so that the token
// is not forgotten.
func SimpleUnlock(ctx context.Context, st store.Store, name, me string, token fence.Token) error {
	return store.Update(ctx, st, name, func(rec *store.Record) (write bool, err error) {
		if rec.Owner != me || rec.Token != token {
			return false, fmt.Errorf("%s: %w by %s", name, ErrNotHeld, me)
		}
		rec.Owner = ""
		return true, nil
	})
}
