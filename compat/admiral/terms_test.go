package admiral_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// TestOperatorOfATerm: an operator who saw another term ends none.
func TestOperatorOfATerm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		w.ours("b", admiral.Options{})
		time.Sleep(wait)
		seen := w.row()
		if _, err := w.operator().Switchover(t.Context(), "b", time.Minute); err != nil {
			t.Fatal(err)
		}
		now := w.row()
		o := w.operator()
		o.Term = seen.Token
		var stale *fence.StaleError
		if _, err := o.Switchover(t.Context(), "a", time.Minute); !errors.As(err, &stale) || stale.Current != now.Token {
			t.Errorf("switch the term before over: %v", err)
		}
		if _, err := o.Hold(t.Context(), "late"); !errors.Is(err, fence.ErrStale) {
			t.Errorf("hold the term before: %v", err)
		}
		if row := w.row(); row.Owner != now.Owner || row.Token != now.Token {
			t.Errorf("the row is %+v, was %+v", row, now)
		}
		o.Term = now.Token
		if _, err := o.Hold(t.Context(), "in time"); err != nil {
			t.Error(err)
		}
	})
}

// TestResumeWithoutATTL: without a configuration, the row of a hold has to say for how long the instance before may still be active.
func TestResumeWithoutATTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.ours("a", admiral.Options{})
		a.activeSoon(time.Second)
		o := w.operator()
		o.Config = admiral.Config{LeaseName: leaseName}
		held, err := o.Hold(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, left, err := o.Resume(t.Context()); err != nil || left != ttl {
			t.Fatalf("it says %v, %v, want %v", left, err, ttl)
		}
		rec := w.row()
		rec.Owner, rec.Info, rec.TTL = held.Owner, nil, held.TTL // by hand
		if _, err := w.db.Open().Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Resume(t.Context()); !errors.Is(err, admiral.ErrNoTTL) {
			t.Errorf("resumed at once: %v", err)
		}
		if w.row().Owner != admiral.SkipOwner {
			t.Error("the hold is over")
		}
	})
}

// TestRoll: who asks sees each answer come, and the times of the lease in it.
func TestRoll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ours("a", admiral.Options{}).activeSoon(time.Second)
		w.ours("b", admiral.Options{})
		time.Sleep(wait)
		var counts []int
		all, err := w.operator().Roll(t.Context(), admiral.RollOptions{Wait: wait, OnAnswer: func(some []admiral.Instance) { counts = append(counts, len(some)) }})
		if err != nil || len(all) != 2 || len(counts) == 0 || counts[len(counts)-1] != 2 || !slices.IsSorted(counts) {
			t.Fatalf("%+v, %v, %v", all, counts, err)
		}
		for _, i := range all {
			if i.TTL != ttl.Seconds() || i.WaitTime != wait.Seconds() {
				t.Errorf("%+v", i)
			}
		}
	})
}

// TestSwitchoverOfAdmirals: an instance of Admiral itself obeys no order, so none is given, and a hold ends its term.
func TestSwitchoverOfAdmirals(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rec := store.Record{Key: leaseName, Owner: "east", Token: 7, TTL: ttl, Acquired: time.Now(), Nonce: "admiral"}
		if _, err := w.db.Open().Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		w.ours("b", admiral.Options{})
		begun := time.Now()
		if _, err := w.operator().Switchover(t.Context(), "b", time.Minute); !errors.Is(err, admiral.ErrForeign) || !strings.Contains(err.Error(), "east") || time.Since(begun) > time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if row := w.row(); row.Owner != "east" || row.Token != 7 {
			t.Errorf("the row is %+v", row)
		}
		if held, err := w.operator().Hold(t.Context(), "x"); err != nil || held.Token <= 7 || w.operator().Settled(held) {
			t.Errorf("%+v, %v", held, err)
		}
	})
}

// TestSwitchoverSaysInTime: the whole wait is enough to find out who is there instead.
func TestSwitchoverSaysInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ours("a", admiral.Options{}).activeSoon(time.Second)
		row := w.row()
		for _, limit := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
			begun := time.Now()
			_, err := w.operator().Switchover(t.Context(), "north", limit)
			var absent *admiral.AbsentError
			if !errors.As(err, &absent) || len(absent.There) != 1 || absent.There[0].Pod != "a" || time.Since(begun) > limit {
				t.Errorf("%v: after %v: %v", limit, time.Since(begun), err)
			}
		}
		if now := w.row(); now.Token != row.Token || now.Owner != row.Owner {
			t.Errorf("%+v, was %+v", now, row)
		}
	})
}
