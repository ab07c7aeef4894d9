package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// claim is what a store said of a record.
type claim struct {
	how   string
	nonce string // "" where it said that there is none
}

// unreplicated: what only the primary has is of unknown outcome to its writer. What the writer's
// handle shows of that, and what any handle confirms, is there after the primary has died, and so
// is all that was acknowledged.
func unreplicated(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	s, other := handles[0], handles[1]
	var kept, gone store.Record
	for key, rec := range map[string]*store.Record{"kept": &kept, "gone": &gone} {
		if *rec, err = patientPut(ctx, other, held(key, 1)); err != nil {
			return err
		}
	}
	if !e.Majority {
		if err := e.comesBack(ctx, s, kept); err != nil {
			return err
		}
		if kept, err = s.Get(ctx, kept.Key); err != nil {
			return err
		}
	}
	if err := e.Detach(); err != nil {
		return err
	}
	renewal := kept
	renewal.Nonce = "lonely"
	claims, err := e.doubtful(ctx, s, other, renewal, gone)
	if err := errors.Join(err, e.FailOver()); err != nil {
		return err
	}
	for _, rec := range []store.Record{kept, gone} {
		after, err := patientLoad(ctx, s, rec.Key)
		if err != nil {
			return fmt.Errorf("after the failover: %w", err)
		}
		if after.Nonce == rec.Nonce && after.Version != rec.Version {
			return fmt.Errorf("after the failover: %s has version %q, and version %q was acknowledged", rec.Key, after.Version, rec.Version)
		}
		for _, c := range claims[rec.Key] {
			if c.nonce != after.Nonce {
				return fmt.Errorf("%s showed nonce %q of %s, and after the failover it is %q", c.how, c.nonce, rec.Key, after.Nonce)
			}
		}
	}
	return nil
}

// shortly is how long a call may take that needs what is cut off.
const shortly = 2 * time.Second

// doubt makes a write that only the primary will have.
func doubt(ctx context.Context, write func(context.Context) error) error {
	for end := time.Now().Add(patience); ; {
		tryCtx, cancel := context.WithTimeout(ctx, shortly)
		err := write(tryCtx)
		cancel()
		switch certain := errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound); {
		case errors.Is(err, store.ErrUnknownOutcome):
			return nil
		case err == nil, certain, time.Now().After(end):
			return fmt.Errorf("a write that only the primary has: %v, want an unknown outcome", err)
		}
	}
}

// comesBack: when the replica follows again, what was in doubt is certain.
func (e *env) comesBack(ctx context.Context, s store.Store, rec store.Record) error {
	if err := e.Detach(); err != nil {
		return err
	}
	late := rec
	late.Nonce = "late"
	if err := doubt(ctx, func(ctx context.Context) error { _, err := s.Put(ctx, late); return err }); err != nil {
		return err
	}
	if err := e.Attach(); err != nil {
		return err
	}
	after, err := patientLoad(ctx, s, rec.Key)
	if err == nil && after.Nonce != late.Nonce && after.Version != rec.Version {
		err = fmt.Errorf("with the replica back, nonce %q is stored, want %q", after.Nonce, late.Nonce)
	}
	if err != nil {
		return err
	}
	// A replica may still be busy with what it missed.
	confirm := func(key string) (store.Record, error) {
		return patiently(ctx, func(ctx context.Context) (store.Record, error) { return store.Confirm(ctx, s, key) })
	}
	confirmed, err := confirm(rec.Key)
	if err == nil && confirmed.Version != after.Version {
		err = fmt.Errorf("a confirmation changed version %q of %s to %q", after.Version, rec.Key, confirmed.Version)
	}
	if err != nil {
		return err
	}
	if none, err := confirm("none"); err != nil || none.Version != "" {
		return fmt.Errorf("a confirmation of a missing key: version %q, %w", none.Version, err)
	}
	return mustMiss(ctx, s, "none")
}

// doubtful writes and deletes what only the primary will have, and returns by key what is then said
// of that.
func (e *env) doubtful(ctx context.Context, s, other store.Store, renewal, gone store.Record) (map[string][]claim, error) {
	put := func(ctx context.Context) (store.Record, error) { return s.Put(ctx, renewal) }
	remove := func(ctx context.Context) (store.Record, error) {
		return store.Record{}, s.Delete(ctx, gone.Key, gone.Version)
	}
	for _, write := range []func(context.Context) (store.Record, error){put, remove} {
		if err := doubt(ctx, func(ctx context.Context) error { _, err := write(ctx); return err }); err != nil {
			return nil, err
		}
	}
	type question struct {
		how string
		of  store.Record
		ask func(context.Context) (store.Record, error)
	}
	questions := []question{{"the same Put again", renewal, put}, {"the same Delete again", gone, remove}}
	for _, rec := range []store.Record{renewal, gone} {
		questions = append(questions,
			question{"Get", rec, func(ctx context.Context) (store.Record, error) { return s.Get(ctx, rec.Key) }},
			question{"Wait", rec, func(ctx context.Context) (store.Record, error) { return store.Wait(ctx, s, rec.Key, rec.Version) }},
			question{"Confirm", rec, func(ctx context.Context) (store.Record, error) { return store.Confirm(ctx, s, rec.Key) }},
			question{"Confirm of another handle", rec, func(ctx context.Context) (store.Record, error) { return store.Confirm(ctx, other, rec.Key) }},
		)
	}
	claims := map[string][]claim{}
	var mu sync.Mutex
	err := together(ctx, len(questions), func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, shortly)
		defer cancel()
		q := questions[i]
		got, err := q.ask(ctx)
		var c *store.ConflictError
		switch {
		case errors.Is(err, store.ErrUnknownOutcome):
			return nil
		case errors.As(err, &c):
			got = c.Current
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil // it says nothing
		}
		if got.Version != q.of.Version { // the past says nothing of a write without an answer
			mu.Lock()
			defer mu.Unlock()
			claims[q.of.Key] = append(claims[q.of.Key], claim{q.how, got.Nonce})
		}
		return nil
	})
	return claims, err
}

// patientPut creates a record, and tries again until the store is ready for it.
func patientPut(ctx context.Context, s store.Store, rec store.Record) (store.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, crashPatience)
	defer cancel()
	for {
		tryCtx, cancelTry := context.WithTimeout(ctx, 5*time.Second)
		got, err := s.Put(tryCtx, rec)
		cancelTry()
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		if got, err = patientLoad(ctx, s, rec.Key); err != nil || got.Nonce == rec.Nonce {
			return got, err
		}
	}
}
