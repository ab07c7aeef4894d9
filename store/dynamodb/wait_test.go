package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// waitFor waits until ctx ends, and says what it was woken by.
func waitUntil(ctx context.Context, s *Store, rec store.Record, woken func(store.Record)) {
	for ctx.Err() == nil {
		next, err := s.Wait(ctx, rec.Key, rec.Version)
		if err == nil {
			rec = next
			if woken != nil {
				woken(rec)
			}
		}
	}
}

// How often those who wait read, in the first seconds of a term and from then on, one of them or many.
func TestPaceOfAWait(t *testing.T) {
	for _, waiters := range []int{1, 100} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := new(virtual)
				clk := clocktest.New(0)
				s := testVirtual(t, v, Options{Clock: clk})
				rec := held("k", 1)
				rec.TTL = 24 * time.Hour // so that no look before its end comes in between
				rec = mustPut(t, s, rec)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range waiters {
					wg.Go(func() { waitUntil(ctx, s, rec, nil) })
				}
				time.Sleep(8 * time.Second)
				if n := v.requests("GetItem"); n < 30 || n > 50 {
					t.Errorf("%d reads in the first 8 s, want some 45", n)
				}
				time.Sleep(time.Hour)
				if n := v.requests("GetItem"); n < 3600 || n > 3600*8/7 {
					t.Errorf("%d reads in the hour after, want 3,840 or so", n)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// A renewal wakes who waits, and doesn't quicken the pace. A change of holder does.
func TestRenewalsDontQuickenAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := new(virtual)
		s := testVirtual(t, v, Options{Clock: clocktest.New(0)})
		holder := testVirtual(t, v, Options{Clock: clocktest.New(0)})
		rec := held("k", 1)
		rec.TTL = 15 * time.Second
		rec = mustPut(t, holder, rec)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		woken := 0
		var last store.Record
		var at time.Time
		var wg sync.WaitGroup
		wg.Go(func() {
			waitUntil(ctx, s, rec, func(r store.Record) { woken++; last, at = r, time.Now() })
		})
		time.Sleep(time.Minute)
		v.requests("GetItem")
		for range 720 { // an hour of renewals
			rec = mustPut(t, holder, rec)
			time.Sleep(5 * time.Second)
		}
		synctest.Wait()
		if n := v.requests("GetItem"); n < 3600 || n > 3600*8/7 {
			t.Errorf("%d reads in an hour of renewals, want 3,840 or so", n)
		}
		if woken < 719 {
			t.Errorf("woken by %d of 720 renewals", woken)
		}
		wrote := time.Now()
		rec.Token++
		rec = mustPut(t, holder, rec)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if last.Token != rec.Token || at.Sub(wrote) > time.Second {
			t.Errorf("the change of holder was noticed after %v", at.Sub(wrote))
		}
		v.requests("GetItem")
		wrote = time.Now()
		rec.Token++
		rec = mustPut(t, holder, rec)
		time.Sleep(time.Second)
		synctest.Wait()
		if last.Token != rec.Token || at.Sub(wrote) > 400*time.Millisecond {
			t.Errorf("the next one, 2 s later, after %v; want an eighth of that at most, and the jitter", at.Sub(wrote))
		}
		cancel()
		wg.Wait()
	})
}

// With a slow pace there is one read shortly before a record that nobody renews has to be given up.
func TestLookBeforeTheEnd(t *testing.T) {
	for ttl, early := range map[time.Duration]time.Duration{time.Minute: 250 * time.Millisecond, time.Second: 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			v := new(virtual)
			s := testVirtual(t, v, Options{Clock: clocktest.New(0), PollMax: time.Hour})
			rec := held("k", 1)
			rec.TTL = 24 * time.Hour
			rec = mustPut(t, s, rec)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var seen []time.Time
			wg.Go(func() { waitUntil(ctx, s, rec, func(store.Record) { seen = append(seen, time.Now()) }) })
			time.Sleep(10 * time.Hour) // so that pauses are about an hour
			other := testVirtual(t, v, Options{Clock: clocktest.New(0)})
			rec.TTL = ttl
			mustPut(t, other, rec)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if len(seen) != 1 {
				t.Fatalf("woken at %v, want once", seen)
			}
			want := seen[0].Add(ttl - early)
			if !slices.ContainsFunc(v.reads, func(at time.Time) bool { return at.Sub(want).Abs() < time.Millisecond }) {
				t.Errorf("no read %v after the first of a record with TTL %v", ttl-early, ttl)
			}
			if i := slices.IndexFunc(v.reads, func(at time.Time) bool { return at.After(want.Add(time.Millisecond)) }); i >= 0 && v.reads[i].Sub(want) < 30*time.Minute {
				t.Errorf("another one after %v", v.reads[i].Sub(want))
			}
			cancel()
			wg.Wait()
		})
	}
}

// What was read before a Wait was called isn't given out as news: the caller may have written since.
func TestWaitAfterAWriteOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := new(virtual)
		s := testVirtual(t, v, Options{Clock: clocktest.New(0)})
		rec := mustPut(t, s, held("k", 1))
		if got, err := s.Wait(t.Context(), "k", ""); err != nil || got.Version != rec.Version {
			t.Fatalf("%+v, %v", got, err)
		}
		rec = mustPut(t, s, rec)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got, err := s.Wait(ctx, "k", rec.Version); err == nil {
			t.Errorf("woken by %s, which was there before %s", got.Version, rec.Version)
		}
	})
}

// Closing the store ends a Wait at once, and not at its next read.
func TestCloseEndsAWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := new(virtual)
		s := testVirtual(t, v, Options{Clock: clocktest.New(0), PollMax: time.Hour})
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Wait(t.Context(), "k", "")
			waiting <- err
		}()
		time.Sleep(10 * time.Hour)
		start := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waiting; !errors.Is(err, store.ErrClosed) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
