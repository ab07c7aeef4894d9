package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// Every error matches its own sentinel and no other, wrapped or not, and says which record it is about.
func TestErrors(t *testing.T) {
	sentinels := []error{store.ErrNotFound, store.ErrConflict, store.ErrInvalid, store.ErrUnknownOutcome, store.ErrCorrupt, store.ErrClosed, io.EOF}
	for _, tt := range []struct {
		err  error
		want []error
		says string
	}{
		{&store.ConflictError{Current: store.Record{Key: "billing", Owner: "a", Token: 7}}, []error{store.ErrConflict}, "held by a, token 7"},
		{&store.ConflictError{Current: store.Record{Key: "billing", Token: 7}}, []error{store.ErrConflict}, "nobody holds it, token 7"},
		{&store.InvalidError{Field: "TTL of billing", Value: "-1s", Want: "more"}, []error{store.ErrInvalid}, "-1s: want more"},
		{&store.CorruptError{Key: "billing", Err: io.EOF}, []error{store.ErrCorrupt, io.EOF}, "EOF"},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
			for _, sentinel := range sentinels {
				if got := errors.Is(err, sentinel); got != slices.Contains(tt.want, sentinel) {
					t.Errorf("errors.Is(%v, %v) = %v", err, sentinel, got)
				}
			}
			if !strings.Contains(err.Error(), "billing") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v: want it to say %q", err, tt.says)
			}
		}
	}
	var conflict *store.ConflictError
	if err := fmt.Errorf("wrapped: %w", &store.ConflictError{Current: store.Record{Token: 7}}); !errors.As(err, &conflict) || conflict.Current.Token != 7 {
		t.Errorf("errors.As: %+v", conflict)
	}
}

func TestClone(t *testing.T) {
	rec := store.Record{Info: map[string]string{"host": "h"}, Past: []store.Term{{Owner: "old"}}, Data: []byte("d")}
	copied := rec.Clone()
	copied.Info["host"], copied.Past[0].Owner, copied.Data[0] = "x", "x", 'x'
	if rec.Info["host"] == "x" || rec.Past[0].Owner == "x" || rec.Data[0] == 'x' {
		t.Errorf("a change of the copy shows in the record: %+v", rec)
	}
	if empty := (store.Record{}).Clone(); empty.Info != nil || empty.Past != nil || empty.Data != nil {
		t.Errorf("a copy of nothing: %+v", empty)
	}
}

func TestLoad(t *testing.T) {
	s := memory.New(memory.Options{})
	rec, err := store.Load(t.Context(), s, "k")
	if err != nil || rec.Key != "k" || rec.Version != "" || rec.Owner != "" || rec.Token != 0 {
		t.Errorf("a key that isn't stored: %+v, %v", rec, err)
	}
	if _, err := s.Put(t.Context(), store.Record{Key: "k", Token: 3}); err != nil {
		t.Fatal(err)
	}
	if rec, err = store.Load(t.Context(), s, "k"); err != nil || rec.Token != 3 {
		t.Errorf("a key that is: %+v, %v", rec, err)
	}
	if _, err := store.Load(t.Context(), s, ""); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no key: %v", err)
	}
}

// unpushed is a store without a Wait of its own, and a count of its reads.
func unpushed(db *memory.DB, plan faulty.Plan) (store.Store, *faulty.Store) {
	f := faulty.Wrap(db.Open(), plan)
	return struct{ store.Store }{f}, f
}

// Without a Waiter, Wait reads every 20 ms at first, and once a second at the slowest.
func TestWaitPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		writer := db.Open()
		var reads []time.Time
		s, _ := unpushed(db, func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get {
				reads = append(reads, time.Now())
			}
			return faulty.Fault{}
		})
		for _, change := range []time.Duration{0, 10 * time.Millisecond, time.Second, 10 * time.Minute} {
			before, err := store.Load(t.Context(), writer, "k")
			if err != nil {
				t.Fatal(err)
			}
			reads = nil
			start := time.Now()
			written := make(chan store.Record, 1)
			time.AfterFunc(change, func() {
				rec, err := writer.Put(context.Background(), store.Record{Key: "k", Version: before.Version})
				if err != nil {
					t.Error(err)
				}
				written <- rec
			})
			got, err := store.Wait(t.Context(), s, "k", before.Version)
			late := time.Since(start) - change
			if want := <-written; err != nil || got.Version != want.Version {
				t.Errorf("Wait: version %q, %v; want %q", got.Version, err, want.Version)
			}
			if most := min(20*time.Millisecond+change/2, time.Second); late < 0 || late > most {
				t.Errorf("a change after %v was seen %v late, want at most %v", change, late, most)
			}
			for i := 1; i < len(reads); i++ {
				if pause := reads[i].Sub(reads[i-1]); pause < 15*time.Millisecond || pause > time.Second {
					t.Errorf("pause %d was %v", i, pause)
				}
			}
			if most := 15 + int(change/(700*time.Millisecond)); len(reads) > most {
				t.Errorf("%d reads in %v, want at most %d", len(reads), change, most)
			}
		}
	})
}

func TestWaitPollsUntil(t *testing.T) {
	errStop, errRead := errors.New("stop"), errors.New("read failed")
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		s, f := unpushed(db, nil)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errStop)
		defer cancel()
		start := time.Now()
		if _, err := store.Wait(ctx, s, "k", ""); err != errStop || time.Since(start) != time.Minute {
			t.Errorf("cancelled: %v after %v", err, time.Since(start))
		}
		if _, err := store.Wait(ctx, s, "k", "x"); err != errStop {
			t.Errorf("cancelled before: %v", err)
		}

		if rec, err := store.Wait(t.Context(), s, "k", "x"); err != nil || rec.Key != "k" || rec.Version != "" {
			t.Errorf("a key that isn't stored, from a version: %+v, %v", rec, err)
		}

		time.AfterFunc(time.Minute, func() {
			f.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errRead} })
		})
		if _, err := store.Wait(t.Context(), s, "k", ""); err != errRead {
			t.Errorf("a read that fails: %v", err)
		}
		f.SetPlan(nil)

		time.AfterFunc(time.Minute, func() { _ = s.Close() })
		start = time.Now()
		if _, err := store.Wait(t.Context(), s, "k", ""); err != store.ErrClosed || time.Since(start) > time.Minute+time.Second {
			t.Errorf("closed: %v after %v", err, time.Since(start))
		}
	})
}

// A store that pushes is not polled.
func TestWaitPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		f := faulty.Wrap(db.Open(), nil)
		time.AfterFunc(time.Hour, func() { _, _ = db.Open().Put(context.Background(), store.Record{Key: "k"}) })
		start := time.Now()
		if rec, err := store.Wait(t.Context(), f, "k", ""); err != nil || rec.Version == "" || time.Since(start) != time.Hour {
			t.Errorf("%+v, %v after %v", rec, err, time.Since(start))
		}
		if f.Count(faulty.Get) != 0 || f.Count(faulty.Wait) != 1 {
			t.Errorf("%d reads and %d waits, want 0 and 1", f.Count(faulty.Get), f.Count(faulty.Wait))
		}
	})
}
