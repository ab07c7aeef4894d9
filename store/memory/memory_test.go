package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func record(key string) store.Record {
	return store.Record{Key: key, Owner: "a", Token: 1, TTL: time.Second}
}

// Age is read off the clock of the database, whatever the time of day does.
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		s := New(Options{Clock: clk})
		rec, err := s.Put(t.Context(), record("k"))
		if err != nil || rec.Age != 0 {
			t.Fatalf("Put: age %v, %v", rec.Age, err)
		}
		clk.StepWall(-time.Hour)
		time.Sleep(time.Minute)
		clk.Jump(time.Hour)
		want := time.Hour + time.Minute
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Age != want {
			t.Errorf("Get: age %v, want %v; %v", got.Age, want, err)
		}
		if got, err := s.Wait(t.Context(), "k", ""); err != nil || got.Age != want {
			t.Errorf("Wait: age %v, want %v; %v", got.Age, want, err)
		}
		for got, err := range s.List(t.Context(), "") {
			if err != nil || got.Age != want {
				t.Errorf("List: age %v, want %v; %v", got.Age, want, err)
			}
		}
		var conflict *store.ConflictError
		if _, err := s.Put(t.Context(), record("k")); !errors.As(err, &conflict) || conflict.Current.Age != want {
			t.Errorf("conflict: %+v", err)
		}
		if again, err := s.Put(t.Context(), rec); err != nil || again.Age != 0 {
			t.Errorf("Put: age %v, want 0; %v", again.Age, err)
		}
	})
}

// A blocked Wait lets virtual time go on, a write on another handle ends it, and nothing is kept of it afterwards.
func TestWaitInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := NewDB(Options{})
		s, other := db.Open(), db.Open()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("waited for long enough"))
		defer cancel()
		start := time.Now()
		if _, err := s.Wait(ctx, "k", ""); err == nil || err != context.Cause(ctx) || time.Since(start) != time.Minute {
			t.Errorf("Wait: %v after %v", err, time.Since(start))
		}
		if len(db.watches) != 0 {
			t.Errorf("%d watches are left behind by a wait that was cancelled", len(db.watches))
		}
		time.AfterFunc(time.Hour, func() { _, _ = other.Put(context.Background(), record("k")) })
		if rec, err := s.Wait(t.Context(), "k", ""); err != nil || rec.Owner != "a" {
			t.Errorf("Wait: %+v, %v", rec, err)
		}
		if len(db.watches) != 0 {
			t.Errorf("%d watches are left behind by a wait that ended", len(db.watches))
		}
	})
}

func TestListIsSorted(t *testing.T) {
	s := New(Options{})
	for _, key := range []string{"b", "a/2", "c", "a/1", "a"} {
		if _, err := s.Put(t.Context(), record(key)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for rec, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rec.Key)
	}
	if fmt.Sprint(got) != "[a a/1 a/2 b c]" {
		t.Errorf("List: %v", got)
	}
}

func BenchmarkPut(b *testing.B) {
	s := New(Options{})
	rec := record("k")
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if rec, err = s.Put(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s := New(Options{})
	if _, err := s.Put(b.Context(), record("k")); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}
