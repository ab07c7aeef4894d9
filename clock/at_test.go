package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

// At and WithDeadline keep to the instant, however long ago it was worked out, and what is over is over at once.
func TestAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		clk.SetRate(2)
		due := clk.Now().Add(time.Minute)
		clk.Jump(20 * time.Second)
		fired := make(chan clock.Instant, 1)
		clock.At(clk, due, func() { fired <- clk.Now() })
		ctx, cancel := clock.WithDeadline(t.Context(), clk, due)
		defer cancel()
		if at := <-fired; at < due || at.Sub(due) > time.Microsecond {
			t.Errorf("At %v: called at %v", due, at)
		}
		if <-ctx.Done(); ctx.Err() != context.DeadlineExceeded || clk.Now().Sub(due) > time.Microsecond {
			t.Errorf("WithDeadline %v: %v at %v", due, ctx.Err(), clk.Now())
		}
		stop := clock.At(clk, due.Add(time.Hour), func() { t.Error("a stopped timer fired") })
		if !stop() || stop() {
			t.Error("stop: want true, then false")
		}
		time.Sleep(time.Hour)
	})
}

func TestAtOfTheSystemsClock(t *testing.T) {
	clk := clock.System()
	for _, due := range []clock.Instant{clock.Ended, clk.Now(), clk.Now().Add(20 * time.Millisecond)} {
		fired := make(chan clock.Instant, 1)
		clock.At(clk, due, func() { fired <- clk.Now() })
		if at := <-fired; at < due {
			t.Errorf("called %v early", due.Sub(at))
		}
	}
	if !clock.At(clk, clock.NoDeadline, func() { t.Error("Never came") })() {
		t.Error("a timer for Never can't be stopped")
	}
}
