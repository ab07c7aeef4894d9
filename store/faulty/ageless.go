package faulty

import (
	"context"
	"errors"
	"iter"

	"github.com/leasehold/leasehold/store"
)

// Ageless returns inner without the Age of its records, like an engine that can't vouch for an age.
// It pushes, whether the inner store does or has to be polled. It owns inner: closing it closes
// inner.
func Ageless(inner store.Store) store.Store { return ageless{inner} }

type ageless struct{ store.Store }

// Get implements [store.Store].
func (a ageless) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := a.Store.Get(ctx, key)
	rec.Age = 0
	return rec, err
}

// Put implements [store.Store].
func (a ageless) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	rec, err := a.Store.Put(ctx, rec)
	rec.Age = 0
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		conflict.Current.Age = 0 // each caller has an error of its own
	}
	return rec, err
}

// List implements [store.Store].
func (a ageless) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range a.Store.List(ctx, prefix) {
			rec.Age = 0
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Wait implements [store.Waiter].
func (a ageless) Wait(ctx context.Context, key, version string) (store.Record, error) {
	rec, err := store.Wait(ctx, a.Store, key, version)
	rec.Age = 0
	return rec, err
}
