package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// ageWithin checks that rec is at most as old as the write that was sent at that instant.
func ageWithin(what string, rec store.Record, sent clock.Instant) error {
	if most := clock.System().Now().Sub(sent); rec.Age < 0 || rec.Age > most {
		return fmt.Errorf("%s: Age is %v, and the write was sent %v ago: it has to be a lower bound", what, rec.Age, most)
	}
	return nil
}

// ageIsLowerBound: Age is never more than the time since the write was sent, wherever the record
// comes from; it doesn't fall while the record is left alone; it isn't stored.
func ageIsLowerBound(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	rec := held("k", 1)
	for range e.times(30, 5) {
		sent := clock.System().Now()
		rec.Age = time.Hour // of the caller's, to be ignored
		if rec, err = handles[0].Put(ctx, rec); err != nil {
			return err
		}
		if err := ageWithin("returned by Put", rec, sent); err != nil {
			return err
		}
		var last time.Duration
		for i := range 10 {
			got, err := handles[i%2].Get(ctx, "k")
			if err := errors.Join(err, ageWithin("returned by Get", got, sent)); err != nil {
				return err
			}
			if got.Age < last {
				return fmt.Errorf("the age fell from %v to %v, and nobody wrote", last, got.Age)
			}
			last = got.Age
		}
		for got, err := range handles[1].List(ctx, "") {
			if err := errors.Join(err, ageWithin("yielded by List", got, sent)); err != nil {
				return err
			}
		}
		got, err := store.Wait(ctx, handles[1], "k", "")
		if err := errors.Join(err, ageWithin("returned by Wait", got, sent)); err != nil {
			return err
		}
		c, err := e.refused("creating a key that exists", put(ctx, handles[1], held("k", 9)))
		if err != nil {
			return err
		}
		if err := ageWithin("inside a ConflictError", c.Current, sent); err != nil {
			return err
		}
	}
	return nil
}

// grownUp reads key until its Age is at least that, and returns it.
func grownUp(ctx context.Context, s store.Store, key string, least time.Duration) (store.Record, error) {
	start, begun := time.Now(), clock.System().Now() // where pauses are virtual, ages aren't
	for {
		rec, err := s.Get(ctx, key)
		if err != nil || rec.Age >= least {
			return rec, err
		}
		if waited := time.Since(start); waited > patience+least && clock.System().Now().Sub(begun) > least+time.Second {
			return rec, fmt.Errorf("the age is %v, %v after the write: want at least %v", rec.Age, waited, least)
		}
		if err := pause(ctx); err != nil {
			return rec, fmt.Errorf("waiting for an Age of %v: it is %v: %w", least, rec.Age, err)
		}
	}
}

// ageGrows: an engine that vouches for ages does so on every handle, and they grow.
func ageGrows(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	if _, err := mustPut(ctx, handles[0], held("k", 1)); err != nil {
		return err
	}
	for _, least := range []time.Duration{1, 5 * time.Millisecond, 50 * time.Millisecond} {
		for _, s := range handles {
			if _, err := grownUp(ctx, s, "k", least); err != nil {
				return err
			}
		}
	}
	return nil
}

// ageStartsAnew: each write starts the Age again, a write that changes nothing and one after a
// deletion too.
func ageStartsAnew(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	rec, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	for _, change := range []string{"Put", "Delete and Put"} {
		if _, err := grownUp(ctx, s, "k", 50*time.Millisecond); err != nil {
			return err
		}
		if change != "Put" {
			if err := mustDelete(ctx, s, "k", rec.Version); err != nil {
				return err
			}
			rec.Version = ""
		}
		sent := clock.System().Now()
		if rec, err = mustPut(ctx, s, rec); err != nil {
			return err
		}
		got, err := s.Get(ctx, "k")
		if err := errors.Join(err, ageWithin("after "+change, got, sent)); err != nil {
			return err
		}
	}
	return nil
}
