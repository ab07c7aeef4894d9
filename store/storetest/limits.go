package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// keyLimits: a key of MaxKey bytes is taken; what isn't 1 to MaxKey bytes of printable UTF-8 is
// refused by every method.
func keyLimits(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	for _, key := range []string{"k", strings.Repeat("k", store.MaxKey), strings.Repeat("é", store.MaxKey/2) + "k"} {
		stored, err := mustPut(ctx, s, held(key, 1))
		if err != nil {
			return err
		}
		if err := errors.Join(mustGet(ctx, s, stored), mustDelete(ctx, s, key, stored.Version)); err != nil {
			return err
		}
	}
	for _, key := range []string{"", strings.Repeat("k", store.MaxKey+1), strings.Repeat("é", store.MaxKey/2+1), "a\x00b", "a\nb", "\xff", "a\u200bb"} {
		_, putErr := s.Put(ctx, held(key, 1))
		_, getErr := s.Get(ctx, key)
		deleteErr := s.Delete(ctx, key, "1")
		for method, err := range map[string]error{"Put": putErr, "Get": getErr, "Delete": deleteErr} {
			if err := invalid(err, "Key"); err != nil {
				return fmt.Errorf("%s of key %s: %w", method, brief(key), err)
			}
		}
		if _, err := store.Wait(ctx, s, key, "1"); !errors.Is(err, store.ErrInvalid) {
			return fmt.Errorf("wait for key %s: %v, want an *InvalidError", brief(key), err)
		}
		if key == "" {
			continue // a prefix may be empty
		}
		if _, err := keysOf(ctx, s, key); !errors.Is(err, store.ErrInvalid) {
			return fmt.Errorf("list of prefix %s: %v, want an *InvalidError", brief(key), err)
		}
	}
	return mustBeEmpty(ctx, s)
}

func mustBeEmpty(ctx context.Context, s store.Store) error {
	keys, err := keysOf(ctx, s, "")
	if err == nil && len(keys) != 0 {
		err = fmt.Errorf("stored although refused or deleted: %v", keys)
	}
	return err
}

// invalid checks that err is an *InvalidError about field.
func invalid(err error, field string) error {
	var inv *store.InvalidError
	if !errors.As(err, &inv) || !errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrUnknownOutcome) {
		return fmt.Errorf("%v, want an *InvalidError", err)
	}
	if inv.Field != field {
		return fmt.Errorf("%w: Field is %q, want %q", err, inv.Field, field)
	}
	return nil
}

// sized returns a record that Marshal writes in exactly n bytes.
func sized(key string, n int) (store.Record, error) {
	rec := held(key, 1)
	rec.Info = map[string]string{"": ""}
	b, err := driver.Marshal(rec)
	rec.Info[""] = strings.Repeat("x", max(n-len(b), 0))
	return rec, err
}

// recordLimits: a record beyond a limit is refused with the name of the field, and what was there
// stays.
func recordLimits(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	stored, err := mustPut(ctx, s, held("there", 1))
	if err != nil {
		return err
	}
	large, err := sized("k", store.MaxRecord+1)
	if err != nil {
		return err
	}
	long := strings.Repeat("x", store.MaxKey+1)
	for _, bad := range []struct {
		field string
		spoil func(*store.Record)
	}{
		{"record", func(r *store.Record) { r.Info = large.Info }},
		{"record", func(r *store.Record) { r.Data = make([]byte, store.MaxRecord) }},
		{"Token", func(r *store.Record) { r.Token = fence.MaxToken + 1 }},
		{"Token", func(r *store.Record) { r.Token = 0 }},
		{"TTL", func(r *store.Record) { r.TTL = store.MaxTTL + 1 }},
		{"TTL", func(r *store.Record) { r.TTL = store.MinTTL - 1 }},
		{"TTL", func(r *store.Record) { r.TTL = -1 }},
		{"Past", func(r *store.Record) { r.Past = make([]store.Term, store.MaxPast+1) }},
		{"Past", func(r *store.Record) { r.Past = []store.Term{{Owner: long}} }},
		{"Past", func(r *store.Record) { r.Past = []store.Term{{Token: fence.MaxToken + 1}} }},
		{"Owner", func(r *store.Record) { r.Owner = long }},
		{"Owner", func(r *store.Record) { r.Owner = "a\nb" }},
		{"Session", func(r *store.Record) { r.Session = long }},
		{"Nonce", func(r *store.Record) { r.Nonce = "\xff" }},
		{"Note", func(r *store.Record) { r.Note = long }},
		{"Kind", func(r *store.Record) { r.Kind = store.Kind(long) }},
		{"Intervention", func(r *store.Record) { r.Intervention = "\x00" }},
		{"Info", func(r *store.Record) { r.Info = map[string]string{"k": "\xff"} }},
		{"Acquired", func(r *store.Record) { r.Acquired = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		for _, rec := range []store.Record{held("new", 2), stored} {
			bad.spoil(&rec)
			_, err := s.Put(ctx, rec)
			if err := invalid(err, bad.field); err != nil {
				return fmt.Errorf("put of a record with a bad %s: %w", bad.field, err)
			}
		}
		if err := errors.Join(mustMiss(ctx, s, "new"), mustGet(ctx, s, stored)); err != nil {
			return fmt.Errorf("after a refused Put: %w", err)
		}
	}
	return nil
}

// largestRecords: a record at every limit is taken, and comes back whole, from a conflict too.
func largestRecords(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	byInfo, err := sized(strings.Repeat("i", store.MaxKey), store.MaxRecord)
	if err != nil {
		return err
	}
	most := full(strings.Repeat("m", store.MaxKey))
	text := strings.Repeat("é", store.MaxKey/2) + "x"
	most.Owner, most.Session, most.Note, most.Nonce, most.Kind = text, text, text, text, store.Kind(text)
	most.Token, most.TTL = fence.MaxToken, store.MaxTTL
	most.Past = nil
	for i := range store.MaxPast {
		// Another in each: what is the same again takes no room.
		text := text[:len(text)-1] + strconv.Itoa(i)
		most.Past = append(most.Past, store.Term{Owner: text, Token: fence.MaxToken - fence.Token(i), From: most.Acquired, Until: most.Acquired, Why: text})
	}
	byData := held("data", 1)
	byData.Data = bytes.Repeat([]byte{0xff}, store.MaxRecord*3/4-500) // in base64
	for _, rec := range []store.Record{byInfo, most, byData} {
		stored, err := mustPut(ctx, s, rec)
		if err != nil {
			return err
		}
		if err := e.conflict(ctx, s, "Put over a large record", put(ctx, s, store.Record{Key: rec.Key}), stored); err != nil {
			return err
		}
	}
	return nil
}
