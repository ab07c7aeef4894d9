package dynamodb

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
)

// Whatever the clocks of the machines do and however long answers take, an age is never more than the time since the write was
// sent, as long as the server's clock keeps within the bound; and it isn't useless.
func TestAgeIsALowerBound(t *testing.T) {
	const bound = 30 * time.Second
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			offset := func() time.Duration { return time.Duration(r.Int64N(int64(bound))) } // hosts differ by less than the bound
			v := &virtual{
				now: func() time.Time { return time.Now().Add(time.Hour + offset()) },
				delay: func() (to, fro time.Duration) {
					return time.Duration(r.Int64N(int64(time.Second / 2))), time.Duration(r.Int64N(int64(time.Second / 2)))
				},
			}
			var stores [2]*Store
			for i := range stores {
				clk := clocktest.New(0)
				clk.SetRate(0.9 + 0.2*r.Float64())
				clk.StepWall(time.Duration(r.Int64N(int64(100 * time.Hour))))
				stores[i] = testVirtual(t, v, Options{Clock: clk, ServerClock: bound})
			}
			rec := held("k", 1)
			most := time.Duration(0)
			for range 20 {
				// The writer has heard from the server before, some time ago.
				if _, err := stores[0].table.Get(t.Context(), rowKey("other")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(r.Int64N(int64(time.Minute))))
				sent := time.Now()
				var err error
				if rec, err = stores[0].Put(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				if rec.Age != 0 {
					t.Errorf("returned by Put: age %v", rec.Age)
				}
				for range 5 {
					time.Sleep(time.Duration(r.Int64N(int64(time.Minute))))
					got, err := stores[1].Get(t.Context(), "k")
					if since := time.Since(sent); err != nil || got.Age > since {
						t.Fatalf("seed %d: age %v, %v after the write was sent, %v", seed, got.Age, since, err)
					}
					most = max(most, got.Age)
				}
			}
			if most < 30*time.Second {
				t.Errorf("seed %d: no age above %v in minutes", seed, most)
			}
		})
	}
}

// Without the option there is none, nor for a row of a writer that had not heard from the server.
func TestAgeIsOptional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := new(virtual)
		without := testVirtual(t, v, Options{Clock: clocktest.New(0)})
		with := testVirtual(t, v, Options{Clock: clocktest.New(0), ServerClock: time.Second})
		rec := mustPut(t, without, held("k", 1)) // its first request
		time.Sleep(time.Hour)
		if got, err := with.Get(t.Context(), "k"); err != nil || got.Age != 0 {
			t.Errorf("of a writer that had heard nothing: %v, %v", got.Age, err)
		}
		mustPut(t, without, rec)
		time.Sleep(time.Hour)
		if got, err := without.Get(t.Context(), "k"); err != nil || got.Age != 0 {
			t.Errorf("without the option: %v, %v", got.Age, err)
		}
		// The stamp is late by the hour between the requests, a quarter more, and the date's second.
		if got, err := with.Get(t.Context(), "k"); err != nil || got.Age < 44*time.Minute || got.Age > time.Hour {
			t.Errorf("with it: %v, %v", got.Age, err)
		}
	})
}

// A stamp is never before what the server's clock shows, however the date was truncated and however long the answer took.
func TestStampIsNotEarly(t *testing.T) {
	for _, fro := range []time.Duration{0, 10 * time.Second} {
		for _, into := range []time.Duration{0, 999 * time.Millisecond} { // a second of the server's clock
			synctest.Test(t, func(t *testing.T) {
				v := &virtual{delay: func() (time.Duration, time.Duration) { return 0, fro }}
				s := testVirtual(t, v, Options{Clock: clocktest.New(0), Attempt: time.Minute})
				if s.stamp() != "" {
					t.Error("a stamp before the first answer")
				}
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + into)))
				if _, err := s.table.Get(t.Context(), rowKey("k")); err != nil {
					t.Fatal(err)
				}
				stamp, err := time.Parse(time.RFC3339Nano, s.stamp())
				if early := time.Until(stamp); err != nil || early < 0 || early > time.Second+fro/4+time.Millisecond {
					t.Errorf("answer under way for %v, %v into a second: the stamp is %v after now, %v", fro, into, early, err)
				}
			})
		}
	}
}
