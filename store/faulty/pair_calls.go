package faulty

import (
	"context"
	"errors"
	"iter"

	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store].
func (r *Replicated) Put(ctx context.Context, rec store.Record) (got store.Record, err error) {
	err = r.write(ctx, rec.Key, rec.Nonce, func() error {
		got, err = r.primary.Put(ctx, rec)
		return err
	})
	if err != nil {
		return store.Record{}, err
	}
	return got, nil
}

// Delete implements [store.Store].
func (r *Replicated) Delete(ctx context.Context, key, version string) error {
	return r.write(ctx, key, "", func() error { return r.primary.Delete(ctx, key, version) })
}

// write has the primary write, and waits for the replica.
func (r *Replicated) write(ctx context.Context, key, nonce string, do func() error) error {
	defer r.doubts.Begin(key, "", nonce)()
	since, replicated := r.doubts.Now(), r.pair.replicated()
	err := do()
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &conflict):
		return r.refused(ctx, conflict.Current)
	case errors.Is(err, store.ErrNotFound):
		return r.refused(ctx, store.Record{Key: key})
	case err != nil:
		return err
	}
	if lost := replicated(ctx); lost != nil {
		r.doubts.Unknown(key, nonce)
		return driver.Unknown(key, lost)
	}
	r.doubts.Done(key, since)
	return nil
}

// refused returns the error of a write in whose place that record was there.
func (r *Replicated) refused(ctx context.Context, rec store.Record) error {
	sure, err := r.sure(ctx, rec)
	return outcome.Refusal(rec.Key, sure, err)
}

// sure returns what was read, or what the replica has too where that shows a write in doubt.
func (r *Replicated) sure(ctx context.Context, rec store.Record) (store.Record, error) {
	if r.worth == store.ReadDurable || r.doubts.Shows(rec.Key, rec.Nonce) {
		return r.confirm(ctx, rec.Key)
	}
	return rec, nil
}

// confirm is [store.Load] of what the replica has, too.
func (r *Replicated) confirm(ctx context.Context, key string) (store.Record, error) {
	replicated := r.pair.replicated()
	rec, err := store.Load(ctx, r.primary, key)
	if err == nil {
		err = replicated(ctx)
	}
	if err != nil {
		return store.Record{}, err
	}
	r.doubts.Confirmed(key, rec.Nonce)
	return rec, nil
}

func stored(rec store.Record, err error) (store.Record, error) {
	if err == nil && rec.Version == "" {
		err = driver.NotFound(rec.Key)
	}
	if err != nil {
		return store.Record{}, err
	}
	return rec, nil
}

// near is the handle that plain reads go to.
func (r *Replicated) near() store.Store {
	r.pair.mu.Lock()
	defer r.pair.mu.Unlock()
	if r.worth == store.ReadLocal && r.pair.apart != nil {
		return r.replica
	}
	return r.primary
}

// Get implements [store.Store].
func (r *Replicated) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := store.Load(ctx, r.near(), key)
	if err == nil {
		rec, err = r.sure(ctx, rec)
	}
	return stored(rec, err)
}

// Confirm implements [store.Confirmer].
func (r *Replicated) Confirm(ctx context.Context, key string) (store.Record, error) {
	return stored(r.confirm(ctx, key))
}

// Wait implements [store.Waiter]. The primary tells of every change.
func (r *Replicated) Wait(ctx context.Context, key, version string) (store.Record, error) {
	rec, err := r.primary.Wait(ctx, key, version)
	if err != nil {
		return store.Record{}, err
	}
	return r.sure(ctx, rec)
}

// List implements [store.Store].
func (r *Replicated) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return r.near().List(ctx, prefix)
}

// Close implements [store.Store].
func (r *Replicated) Close() error { return errors.Join(r.primary.Close(), r.replica.Close()) }
