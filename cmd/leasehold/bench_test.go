package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

func TestBench(t *testing.T) { scripts(t, "bench") }

// slowWrites is a store whose writes take their time, and go on when nobody waits for them any more.
type slowWrites struct {
	store.Store
	takes   time.Duration
	running *sync.WaitGroup
}

func (s slowWrites) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	var err error
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		time.Sleep(s.takes)
		rec, err = s.Store.Put(context.WithoutCancel(ctx), rec)
	})
	select {
	case <-done:
		return rec, err
	case <-ctx.Done():
		return store.Record{}, driver.Unknown("a name", context.Cause(ctx))
	}
}

// Whenever it is interrupted, a bench leaves no name behind, not even by a write that is still on its way.
func TestInterruptedBenchLeavesNothing(t *testing.T) {
	const takes = 200 * time.Millisecond
	for interrupt := takes / 4; interrupt < 5*takes; interrupt += takes / 4 {
		synctest.Test(t, func(t *testing.T) {
			var running sync.WaitGroup
			st := memory.New(memory.Options{})
			defer st.Close()
			a := &app{clk: clock.NewFake(0)}
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			time.AfterFunc(interrupt, func() { cancel(enough) })
			if _, err := a.benchPairs(ctx, slowWrites{st, takes, &running}, 3, time.Hour); !errors.Is(err, enough) {
				t.Errorf("interrupted after %v: %v", interrupt, err)
			}
			running.Wait()
			for rec, err := range st.List(context.Background(), "") {
				t.Errorf("interrupted after %v: %+v is left, %v", interrupt, rec, err)
			}
		})
	}
}

// A store that gives no answer any more is not waited for without end.
func TestInterruptedBenchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		st := memory.New(memory.Options{})
		defer st.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		begun := time.Now()
		time.AfterFunc(time.Second, func() { cancel(enough) })
		a := &app{clk: clock.NewFake(0)}
		if _, err := a.benchPairs(ctx, slowWrites{st, time.Hour, &running}, 3, time.Hour); !errors.Is(err, enough) {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second+interruptWait+time.Minute {
			t.Errorf("it ended after %v", took)
		}
		running.Wait()
	})
}
