package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// errStop is the cause with which checks cancel.
var errStop = errors.New("stopped by the check")

// doneContext: a call whose context is done before does nothing, and says why.
func doneContext(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	stored, err := mustPut(ctx, s, held("there", 1))
	if err != nil {
		return err
	}
	stopped, cancel := context.WithCancelCause(ctx)
	cancel(errStop)
	late, cancelLate := context.WithTimeout(ctx, -1)
	defer cancelLate()
	for _, c := range []struct {
		ctx   context.Context
		cause error
	}{{stopped, errStop}, {late, context.DeadlineExceeded}} {
		_, createErr := s.Put(c.ctx, held("new", 1))
		_, putErr := s.Put(c.ctx, stored)
		_, conflictErr := s.Put(c.ctx, held("there", 9))
		deleteErr := s.Delete(c.ctx, "there", stored.Version)
		_, getErr := s.Get(c.ctx, "there")
		_, waitErr := store.Wait(c.ctx, s, "there", "")
		_, listErr := keysOf(c.ctx, s, "")
		for call, err := range map[string]error{
			"Put of a new key": createErr, "Put": putErr, "Put at another version": conflictErr, "Delete": deleteErr,
			"Get": getErr, "Wait": waitErr, "List": listErr,
		} {
			if !errors.Is(err, c.cause) || errors.Is(err, store.ErrUnknownOutcome) {
				return fmt.Errorf("%s with a context that is done: %v, want its cause, %v, and a known outcome", call, err, c.cause)
			}
		}
	}
	return errors.Join(mustGet(ctx, s, stored), mustMiss(ctx, s, "new"))
}

// attempt is a write that was cancelled at some moment, and its outcome.
type attempt struct {
	what   string
	before store.Record // with Version "": the key wasn't stored
	nonce  string       // of the write; "" for a Delete
	err    error
}

// verify checks that what is stored fits the outcome.
func (a attempt) verify(ctx context.Context, s store.Store) error {
	rec, err := store.Load(ctx, s, a.before.Key)
	if err != nil {
		return err
	}
	happened := rec.Version != a.before.Version
	switch {
	case happened && rec.Nonce != a.nonce:
		return fmt.Errorf("%s: stored is a record with nonce %q, want %q", a.what, rec.Nonce, a.nonce)
	case a.err == nil && !happened:
		return fmt.Errorf("%s was acknowledged, and did not happen", a.what)
	case a.err != nil && !errors.Is(a.err, store.ErrUnknownOutcome) && happened:
		return fmt.Errorf("%s was reported as not done, by %q, and happened", a.what, a.err)
	}
	return nil
}

// run makes the write and keeps its outcome.
func (a *attempt) run(ctx context.Context, s store.Store) {
	if a.nonce == "" {
		a.err = s.Delete(ctx, a.before.Key, a.before.Version)
		return
	}
	rec := held(a.before.Key, a.before.Token+1)
	rec.Version, rec.Nonce = a.before.Version, a.nonce
	_, a.err = s.Put(ctx, rec)
}

// cancelledWrites: a write that is cancelled at any moment is done if it says so, and never happens
// if it says that it did not.
func cancelledWrites(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	var took []time.Duration
	timed := func(rec store.Record) (store.Record, error) {
		start := clock.System().Now()
		virtual := time.Now()
		stored, err := mustPut(ctx, handles[0], rec)
		took = append(took, max(clock.System().Now().Sub(start), time.Since(virtual)))
		return stored, err
	}
	attempts := make([]attempt, e.times(300, 45))
	for i := range attempts {
		key := fmt.Sprintf("k/%d", i)
		before := store.Record{Key: key}
		stored, err := timed(held(key+"/there", 1))
		if err != nil {
			return err
		}
		a := attempt{what: "creating " + key, before: before, nonce: fmt.Sprintf("cancelled/%d", i)}
		switch i % 3 {
		case 1:
			a.what, a.before = "Put of "+stored.Key, stored
		case 2:
			a.what, a.before, a.nonce = "Delete of "+stored.Key, stored, ""
		}
		slices.Sort(took)
		writeCtx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(1+rand.N(2*took[len(took)/2]+1), func() { cancel(errStop) })
		a.run(writeCtx, handles[i%2])
		timer.Stop()
		cancel(nil)
		if a.err != nil && !errors.Is(a.err, store.ErrUnknownOutcome) && !errors.Is(a.err, errStop) {
			return fmt.Errorf("%s, cancelled: %w, want the context's cause or an unknown outcome", a.what, a.err)
		}
		if err := a.verify(ctx, handles[0]); err != nil {
			return err
		}
		attempts[i] = a
	}
	for _, a := range attempts { // again, for those that were still on their way
		if err := a.verify(ctx, handles[1]); err != nil {
			return fmt.Errorf("later: %w", err)
		}
	}
	return nil
}
