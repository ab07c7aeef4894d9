package clock_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInstantSaturates(t *testing.T) {
	const far = math.MaxInt64
	for _, tt := range []struct {
		t    clock.Instant
		d    time.Duration
		want clock.Instant
	}{
		{0, 5, 5}, {5, -5, 0}, {10, -15, -5},
		{far - 1, 1, clock.NoDeadline}, {far - 1, 2, clock.NoDeadline}, {1, far, clock.NoDeadline}, {clock.NoDeadline - 5, far, clock.NoDeadline},
		{-far, -1, clock.Ended}, {-far, -2, clock.Ended}, {-2, math.MinInt64, clock.Ended},
		{clock.NoDeadline, -1, clock.NoDeadline}, {clock.NoDeadline, far, clock.NoDeadline}, {clock.Ended, 1, clock.Ended}, {clock.Ended, -1, clock.Ended},
	} {
		if got := tt.t.Add(tt.d); got != tt.want {
			t.Errorf("Instant(%d).Add(%d) = %d, want %d", tt.t, tt.d, got, tt.want)
		}
	}
	for _, tt := range []struct {
		t, u clock.Instant
		want time.Duration
	}{
		{5, 3, 2}, {3, 5, -2}, {7, 7, 0}, {clock.NoDeadline, clock.NoDeadline, 0}, {clock.Ended, clock.Ended, 0},
		{clock.NoDeadline, -1, far}, {clock.NoDeadline, clock.Ended, far}, {clock.Ended, 1, math.MinInt64}, {-2, far, math.MinInt64},
	} {
		if got := tt.t.Sub(tt.u); got != tt.want {
			t.Errorf("Instant(%d).Sub(%d) = %d, want %d", tt.t, tt.u, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := clock.Instant(rapid.Int64().Draw(t, "a"))
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		sum := a.Add(d)
		if (d >= 0 && sum < a) || (d <= 0 && sum > a) {
			t.Fatalf("%d + %d wrapped round to %d", a, d, sum)
		}
		if sum != clock.NoDeadline && sum != clock.Ended && sum.Sub(a) != d {
			t.Fatalf("(%d + %d) - %d = %d", a, d, a, sum.Sub(a))
		}
	})
}

// A deadline that is armed late ends its context as any other does; what is over before has no timer.
func TestWithLateDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		ctx := clock.WithLateDeadline(t.Context(), clk, clk.Now().Add(time.Minute))
		time.Sleep(30 * time.Second)
		ctx.Arm()
		ctx.Arm()
		<-ctx.Done()
		if ctx.Err() != context.DeadlineExceeded || context.Cause(ctx) != context.DeadlineExceeded || clk.Now().Sub(clock.Instant(time.Minute)) > time.Microsecond {
			t.Errorf("%v, %v at %v", ctx.Err(), context.Cause(ctx), clk.Now())
		}
		ctx.Cancel()
		ctx = clock.WithLateDeadline(t.Context(), clk, clk.Now())
		if time.Sleep(time.Hour); ctx.Err() != nil {
			t.Errorf("over before it was armed: %v", ctx.Err())
		}
		ctx.Arm()
		if <-ctx.Done(); ctx.Err() != context.DeadlineExceeded {
			t.Errorf("armed after its deadline: %v", ctx.Err())
		}
		ctx.Cancel()
		ctx = clock.WithLateDeadline(t.Context(), clk, clk.Now().Add(time.Minute))
		ctx.Cancel()
		ctx.Arm()
		if time.Sleep(time.Hour); ctx.Err() != context.Canceled {
			t.Errorf("cancelled: %v", ctx.Err())
		}
		ctx = clock.WithLateDeadline(t.Context(), clk, clk.Now().Add(time.Minute))
		ctx.Arm()
		ctx.Cancel()
		if time.Sleep(time.Hour); ctx.Err() != context.Canceled {
			t.Errorf("armed, and cancelled: %v", ctx.Err())
		}
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		if err := clock.Sleep(t.Context(), clk, time.Minute); err != nil || clk.Now() < clock.Instant(time.Minute) {
			t.Errorf("Sleep: %v at %v", err, clk.Now())
		}
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		start := clk.Now()
		if err := clock.Sleep(ctx, clk, time.Hour); err != errEnough || clk.Now().Sub(start) != time.Second {
			t.Errorf("Sleep, cancelled: %v after %v", err, clk.Now().Sub(start))
		}
	})
}

func TestTimerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		var none *clock.Timer
		if none.Stop() {
			t.Error("a nil timer was stopped")
		}
		timer := clock.NewTimer(clk, time.Second)
		if !timer.Stop() || timer.Stop() {
			t.Error("Stop: want true, then false")
		}
		time.Sleep(time.Minute)
		select {
		case <-timer.C:
			t.Error("a stopped timer fired")
		default:
		}
		fired := clock.NewTimer(clk, time.Second)
		<-fired.C
		if fired.Stop() {
			t.Error("a timer was stopped that had fired")
		}
	})
}

func TestWithTimeout(t *testing.T) {
	errEnough := errors.New("enough")
	type result struct{ err, cause error }
	for name, tt := range map[string]struct {
		end   func(parent context.CancelCauseFunc, cancel context.CancelFunc)
		after time.Duration
		want  result
	}{
		"time-out":         {func(context.CancelCauseFunc, context.CancelFunc) {}, time.Minute, result{context.DeadlineExceeded, context.DeadlineExceeded}},
		"cancel":           {func(_ context.CancelCauseFunc, cancel context.CancelFunc) { cancel() }, 0, result{context.Canceled, context.Canceled}},
		"parent's end":     {func(parent context.CancelCauseFunc, _ context.CancelFunc) { parent(errEnough) }, 0, result{context.Canceled, errEnough}},
		"parent's timeout": {func(parent context.CancelCauseFunc, _ context.CancelFunc) { parent(context.DeadlineExceeded) }, 0, result{context.DeadlineExceeded, context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clocktest.New(0)
				clk.SetRate(2)
				start := clk.Now()
				parent, end := context.WithCancelCause(context.WithValue(t.Context(), result{}, "value"))
				ctx, cancel := clock.WithTimeout(parent, clk, time.Minute)
				defer cancel()
				child, cancelChild := context.WithCancel(ctx)
				defer cancelChild()
				nested, cancelNested := clock.WithTimeout(ctx, clk, time.Hour)
				defer cancelNested()
				if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(result{}) != "value" {
					t.Errorf("before: %v, %v, value %v", ctx.Err(), context.Cause(ctx), ctx.Value(result{}))
				}
				tt.end(end, cancel)
				<-ctx.Done()
				<-child.Done()
				<-nested.Done()
				if got := clk.Now().Sub(start).Round(time.Microsecond); got != tt.after {
					t.Errorf("done after %v, want %v", got, tt.after)
				}
				if got := (result{ctx.Err(), context.Cause(ctx)}); got != tt.want {
					t.Errorf("Err and Cause: %v, want %v", got, tt.want)
				}
				if got := (result{nested.Err(), context.Cause(nested)}); got != tt.want {
					t.Errorf("Err and Cause of a context with a time-out under it: %v, want %v", got, tt.want)
				}
				if got := context.Cause(child); got != tt.want.cause {
					t.Errorf("Cause of a context under it: %v, want %v", got, tt.want.cause)
				}
				time.Sleep(time.Hour) // what it was does not change
				cancel()
				end(errors.New("later"))
				if got := (result{ctx.Err(), context.Cause(ctx)}); got != tt.want {
					t.Errorf("later, Err and Cause: %v, want %v", got, tt.want)
				}
			})
		})
	}
}
