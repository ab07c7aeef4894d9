package faulty_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestCountAndNumbers(t *testing.T) {
	var ops []faulty.Op
	n := newNetwork(func(op faulty.Op) faulty.Fault {
		ops = append(ops, op)
		return faulty.Fault{}
	})
	ctx := t.Context()
	rec, err := n.Put(ctx, record("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = n.Get(ctx, "missing")
	_, _ = n.Put(ctx, record("b"))
	_, _ = n.Wait(ctx, "a", "")
	_ = n.Delete(ctx, "a", rec.Version)
	for _, err := range n.List(ctx, "pre") {
		if err != nil {
			t.Error(err)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = n.Get(done, "a") // never sent, so neither counted nor planned

	var got []faulty.Op
	for _, op := range ops {
		got = append(got, faulty.Op{Seq: op.Seq, Nth: op.Nth, Kind: op.Kind, Key: op.Key})
	}
	want := []faulty.Op{
		{1, 1, faulty.Put, "a", store.Record{}}, {2, 1, faulty.Get, "missing", store.Record{}},
		{3, 2, faulty.Put, "b", store.Record{}}, {4, 1, faulty.Wait, "a", store.Record{}},
		{5, 1, faulty.Push, "a", store.Record{}}, {6, 1, faulty.Delete, "a", store.Record{}},
		{7, 1, faulty.List, "pre", store.Record{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the plan was asked about\n%+v, want\n%+v", got, want)
	}
	if ops[0].Record.Owner != "a" || ops[4].Record.Version != rec.Version || ops[5].Record.Version != rec.Version {
		t.Errorf("records of the operations: %+v", ops)
	}
	for kind, want := range map[faulty.Kind]int{faulty.Put: 2, faulty.Get: 1, faulty.Wait: 1, faulty.Push: 1, faulty.Delete: 1, faulty.List: 1} {
		if got := n.Count(kind); got != want {
			t.Errorf("Count(%s) = %d, want %d", kind, got, want)
		}
	}
}

func TestClose(t *testing.T) {
	t.Run("waits for late writes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(on(faulty.Put, faulty.Fault{ApplyLate: time.Hour}))
			start := time.Now()
			_, _ = n.Put(t.Context(), record("k"))
			if err := n.Close(); err != nil || time.Since(start) != time.Hour {
				t.Errorf("Close: %v after %v", err, time.Since(start))
			}
			if _, err := n.direct.Get(t.Context(), "k"); err != nil {
				t.Errorf("the late write: %v", err)
			}
		})
	})
	t.Run("releases who hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Kind != faulty.Wait} })
			ctx := context.Background()
			errs := make(chan error, 2)
			go func() { _, err := n.Put(ctx, record("k")); errs <- err }()
			synctest.Wait()
			if err := n.Close(); err != nil {
				t.Error(err)
			}
			if err := <-errs; !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, store.ErrClosed) {
				t.Errorf("the Put that hung: %v", err)
			}
			for _, err := range n.List(ctx, "") {
				if !errors.Is(err, store.ErrClosed) {
					t.Errorf("List: %v", err)
				}
			}
			if _, err := n.Put(ctx, record("k")); err != store.ErrClosed {
				t.Errorf("Put: %v", err)
			}
			if err := n.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
		})
	})
	t.Run("ends a wait before it waits for late writes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(on(faulty.Put, faulty.Fault{ApplyLate: time.Hour}))
			start := time.Now()
			_, _ = n.Put(t.Context(), record("other"))
			ended := make(chan time.Duration, 1)
			go func() {
				if _, err := n.Wait(context.Background(), "k", ""); !errors.Is(err, store.ErrClosed) {
					t.Errorf("Wait: %v", err)
				}
				ended <- time.Since(start)
			}()
			synctest.Wait()
			_ = n.Close()
			if d := <-ended; d != 0 {
				t.Errorf("Wait ended after %v", d)
			}
		})
	})
}

// A store that can't push is polled through the wrapper.
func TestWaitPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		s := faulty.Wrap(struct{ store.Store }{db.Open()}, nil)
		go func() {
			time.Sleep(time.Minute)
			_, _ = db.Open().Put(context.Background(), record("k"))
		}()
		rec, err := s.Wait(t.Context(), "k", "")
		if err != nil || rec.Owner != "a" {
			t.Errorf("Wait: %+v, %v", rec, err)
		}
	})
}

func TestOutage(t *testing.T) {
	t.Run("hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var o faulty.Outage
			n := newNetwork(o.Plan(nil))
			rec, err := n.Put(t.Context(), record("k"))
			if err != nil {
				t.Fatal(err)
			}
			waited := make(chan store.Record)
			start := time.Now()
			for range 2 { // one waits before the outage, one begins in it
				go func() {
					got, err := n.Wait(context.Background(), "k", rec.Version)
					if err != nil || time.Since(start) != time.Minute {
						t.Errorf("Wait: %v after %v", err, time.Since(start))
					}
					waited <- got
				}()
				synctest.Wait()
				o.Start()
			}
			if rec, err = n.direct.Put(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := within(5 * time.Second)
			defer cancel()
			if _, err := n.Put(ctx, rec); !errors.Is(err, store.ErrUnknownOutcome) || time.Since(start) != 5*time.Second {
				t.Errorf("Put: %v after %v", err, time.Since(start))
			}
			time.Sleep(55 * time.Second)
			o.End()
			for range 2 {
				if got := <-waited; got.Version != rec.Version {
					t.Errorf("Wait returned version %s, want %s", got.Version, rec.Version)
				}
			}
			if _, err := n.Get(t.Context(), "k"); err != nil {
				t.Errorf("after the outage: %v", err)
			}
		})
	})
	t.Run("refuses", func(t *testing.T) {
		var o faulty.Outage
		errDown := errors.New("no route to host")
		n := newNetwork(o.Plan(on(faulty.Get, faulty.Fault{LoseReply: true})))
		o.StartRefusing(errDown)
		if _, err := n.Put(t.Context(), record("k")); err != errDown {
			t.Errorf("Put: %v", err)
		}
		if _, err := n.Wait(t.Context(), "k", ""); err != errDown {
			t.Errorf("Wait: %v", err)
		}
		o.End()
		if _, err := n.Put(t.Context(), record("k")); err != nil {
			t.Errorf("Put after the outage: %v", err)
		}
		if _, err := n.Get(t.Context(), "k"); err != faulty.ErrLost {
			t.Errorf("Get after the outage, by the other plan: %v", err)
		}
	})
}

func TestRandom(t *testing.T) {
	rates := faulty.Rates{Delay: 0.5, ReplyDelay: 0.2, Refuse: 0.1, Drop: 0.1, LoseReply: 0.3, ApplyLate: 0.2, ApplyTwice: 0.1, Silent: 0.5, MaxDelay: time.Minute}
	draw := func(seed uint64) (faults []faulty.Fault) {
		plan := faulty.Random(seed, rates)
		for i := range 4000 {
			faults = append(faults, plan(faulty.Op{Seq: i + 1}))
		}
		return faults
	}
	a := draw(1)
	if !reflect.DeepEqual(a, draw(1)) {
		t.Error("one seed gave two sequences of faults")
	}
	if reflect.DeepEqual(a, draw(2)) {
		t.Error("two seeds gave the same faults")
	}
	var delayed, lost, refused int
	for _, f := range a {
		if f.Delay > time.Minute || f.ReplyDelay > time.Minute || f.ApplyLate > time.Minute {
			t.Fatalf("beyond MaxDelay: %+v", f)
		}
		if f.Delay > 0 {
			delayed++
		}
		if f.LoseReply {
			lost++
		}
		if f.Err != nil {
			refused++
		}
	}
	// Six standard deviations at 4000 draws: 190 at a rate of 0.5.
	for _, c := range []struct{ got, want int }{{delayed, 2000}, {lost, 1200}, {refused, 400}} {
		if c.got < c.want-190 || c.got > c.want+190 {
			t.Errorf("%d faults of 4000, want about %d", c.got, c.want)
		}
	}
	if f := faulty.Random(1, faulty.Rates{})(faulty.Op{Seq: 1}); f != (faulty.Fault{}) {
		t.Errorf("no rates: %+v", f)
	}
}
