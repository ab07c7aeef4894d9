package admiral_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// TestMirror: a program's own variables follow the state in its order, and are read-only at last.
func TestMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		db := memory.NewDB(memory.Options{Clock: clk})
		cfg := admiral.Config{LeaseName: "prod", PodIdentifier: "east", WaitTime: time.Second, FailureThreshold: 3, Store: "memory:"}
		c, err := admiral.New(func(context.Context) (store.Store, error) { return db.Open(), nil }, cfg, admiral.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		var seen []admiral.Status
		state := admiral.NewState(clk)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- admiral.Mirror(ctx, c, state, func(s admiral.Status) { seen = append(seen, s) }) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(seen) < 2 || !seen[0].ReadOnly || seen[0].Initialized || seen[len(seen)-1].ReadOnly {
			t.Errorf("%+v", seen)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if last := seen[len(seen)-1]; !last.ReadOnly || last.Reason != "the state checker has stopped" {
			t.Errorf("at last: %+v", last)
		}
		for i := range seen[1:] {
			if seen[i+1].Seq < seen[i].Seq {
				t.Errorf("out of order: %+v", seen)
			}
		}
	})
}

// TestRemove: the rows of a lease that nobody uses go, and those of one that is held stay.
func TestRemove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := admiral.Operator{Store: w.db.Open(), Config: admiral.Config{LeaseName: leaseName, WaitTime: wait, FailureThreshold: threshold}, Clock: clocktest.New(0)}
		ctx := t.Context()
		if _, err := op.Hold(ctx, ""); err != nil {
			t.Fatal(err)
		}
		if err := op.Remove(ctx); err == nil {
			t.Error("a hold was removed")
		}
		if _, _, err := op.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := op.RollCall(ctx, time.Second); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := op.Remove(ctx); err != nil {
				t.Error(err)
			}
		}
		for rec, err := range w.db.Open().List(ctx, "") {
			t.Errorf("left: %+v, %v", rec, err)
		}
	})
}
