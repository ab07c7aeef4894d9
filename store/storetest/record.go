package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/internal/proof/records"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// roundTrip: every field comes back as it was, alone and with the others, when it is set and when
// it is cleared.
func roundTrip(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	all := full("all")
	monotonic := time.Now()
	records := []store.Record{
		all,
		{Key: "none"},
		held("held", 1),
		{Key: "owner", Owner: all.Owner, Token: 1, TTL: store.MinTTL},
		{Key: "token", Token: all.Token},
		{Key: "ttl", TTL: all.TTL},
		{Key: "session", Session: all.Session},
		{Key: "acquired", Acquired: all.Acquired},
		{Key: "acquired/monotonic", Acquired: monotonic},
		{Key: "acquired/zone", Acquired: all.Acquired.In(time.FixedZone("", 5*3600+1800))},
		{Key: "acquired/old", Acquired: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Key: "acquired/far", Acquired: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
		{Key: "mark", Intervention: all.Intervention},
		{Key: "note", Note: all.Note},
		{Key: "kind", Kind: all.Kind},
		{Key: "info", Info: all.Info},
		{Key: "past", Past: all.Past},
		{Key: "past/zone", Past: []store.Term{{From: monotonic, Until: monotonic.In(time.FixedZone("", -3600))}}},
		{Key: "data", Data: all.Data},
		{Key: "nonce", Nonce: all.Nonce},
	}
	for _, rec := range records {
		stored, err := mustPut(ctx, handles[0], rec)
		if err != nil {
			return err
		}
		rec.Version = stored.Version
		if err := errors.Join(mustGet(ctx, handles[0], rec), mustGet(ctx, handles[1], rec)); err != nil {
			return err
		}
		// Overwritten by a record without any of it, and by one with all of it.
		for _, next := range []store.Record{{}, all} {
			next.Key, next.Version = rec.Key, stored.Version
			if stored, err = mustPut(ctx, handles[1], next); err != nil {
				return err
			}
			next.Version = stored.Version
			if err := mustGet(ctx, handles[0], next); err != nil {
				return err
			}
		}
	}
	return nil
}

// roundTripRandom: so does any record that a store takes, by Get and by List.
func roundTripRandom(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	n := 0
	return property(func(t *rapid.T) error {
		n++ // a key of its own for each try
		key := fmt.Sprintf("%d/", n)
		rec := records.Any().Draw(t, "record")
		rec.Key = key + rec.Key[:min(len(rec.Key), store.MaxKey-len(key))]
		if driver.CheckKey(rec.Key) != nil {
			rec.Key = key // the cut went through a character
		}
		stored, err := mustPut(ctx, s, rec)
		if err != nil {
			return err
		}
		rec.Version = stored.Version
		if err := mustGet(ctx, s, rec); err != nil {
			return err
		}
		for got, err := range s.List(ctx, key) {
			if err := errors.Join(err, same(got, rec)); err != nil {
				return fmt.Errorf("returned by List: %w", err)
			}
		}
		return nil
	})
}

// emptyIsNil: what is empty comes back as nil, however it was written.
func emptyIsNil(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	rec := store.Record{Key: "k", Info: map[string]string{}, Past: []store.Term{}, Data: []byte{}}
	stored, err := mustPut(ctx, s, rec)
	if err != nil {
		return err
	}
	got, err := s.Get(ctx, "k")
	if err != nil {
		return err
	}
	for _, r := range []store.Record{stored, got} {
		if r.Info != nil || r.Past != nil || r.Data != nil {
			return fmt.Errorf("empty Info, Past and Data came back as %#v, %#v and %#v, want nil", r.Info, r.Past, r.Data)
		}
	}
	return nil
}

// ttlIsExact: no unit is rounded to.
func ttlIsExact(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	for i, ttl := range []time.Duration{
		0, 1, 999, time.Microsecond + 1, store.MinTTL, store.MinTTL + 1, 1500 * time.Millisecond, 15*time.Second + 900*time.Millisecond,
		time.Hour + time.Nanosecond, store.MaxTTL - 1, store.MaxTTL,
	} {
		rec := store.Record{Key: fmt.Sprintf("ttl%d", i), TTL: ttl}
		stored, err := mustPut(ctx, s, rec)
		if err != nil {
			return err
		}
		if err := mustGet(ctx, s, stored); err != nil {
			return err
		}
	}
	return nil
}

// noAliasing: what the caller does to its record later, and to records that it was given, changes
// nothing in the store.
func noAliasing(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	spoil := func(rec store.Record) {
		for k := range rec.Info {
			rec.Info[k] = "spoilt"
		}
		rec.Info["more"] = "spoilt"
		rec.Past[0].Owner = "spoilt"
		rec.Data[0] = 'X'
	}
	rec := full("k")
	want := rec
	want.Info, want.Past, want.Data = maps.Clone(rec.Info), slices.Clone(rec.Past), slices.Clone(rec.Data)
	stored, err := s.Put(ctx, rec)
	if err != nil {
		return err
	}
	want.Version = stored.Version
	check := func(what string) error {
		if err := mustGet(ctx, s, want); err != nil {
			return fmt.Errorf("after a change of %s: %w", what, err)
		}
		return nil
	}
	spoil(rec)
	if err := check("the record given to Put"); err != nil {
		return err
	}
	spoil(stored)
	if err := check("the record returned by Put"); err != nil {
		return err
	}
	got, err := s.Get(ctx, "k")
	if err != nil {
		return err
	}
	spoil(got)
	if err := check("the record returned by Get"); err != nil {
		return err
	}
	for got, err := range s.List(ctx, "") {
		if err != nil {
			return err
		}
		spoil(got)
	}
	if err := check("the record yielded by List"); err != nil {
		return err
	}
	if got, err = store.Wait(ctx, s, "k", ""); err != nil {
		return err
	}
	spoil(got)
	if err := check("the record returned by Wait"); err != nil {
		return err
	}
	c, err := e.refused("creating a key that exists", put(ctx, s, store.Record{Key: "k"}))
	if err != nil {
		return err
	}
	spoil(c.Current)
	return check("the record inside a ConflictError")
}
