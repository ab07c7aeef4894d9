package clocktest_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// near says whether two durations differ by less than what rates in floating point round off.
func near(a, b time.Duration) bool { return (a - b).Abs() < 10*time.Nanosecond }

func TestClockRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(100)
		wall := clk.Wall()
		if clk.Now() != 100 {
			t.Errorf("origin: %d", clk.Now())
		}
		var shown time.Duration
		for _, rate := range []float64{1, 1.11, 0.5, 0, 2, -3} { // a rate below 0 is 0
			clk.SetRate(rate)
			if got := clk.Now().Sub(100); !near(got, shown) {
				t.Errorf("SetRate(%v) made the clock jump from %v to %v", rate, shown, got)
			}
			time.Sleep(time.Hour)
			shown += time.Duration(max(rate, 0) * float64(time.Hour))
			if got := clk.Now().Sub(100); !near(got, shown) {
				t.Errorf("after an hour at rate %v: %v, want %v", rate, got, shown)
			}
			if got := clk.Wall().Sub(wall); !near(got, shown) {
				t.Errorf("time of day after an hour at rate %v: %v later, want %v", rate, got, shown)
			}
		}
	})
}

func TestClockWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		if !clk.Wall().Equal(time.Now()) {
			t.Errorf("time of day: %v, want %v", clk.Wall(), time.Now())
		}
		clk.StepWall(-time.Hour)
		clk.SetRate(1.5)
		time.Sleep(time.Minute)
		if got, want := time.Until(clk.Wall()), -time.Hour+30*time.Second; got != want {
			t.Errorf("time of day: %v ahead, want %v", got, want)
		}
		if clk.Now() != clock.Instant(90*time.Second) {
			t.Errorf("StepWall changed Now: %v", clk.Now())
		}
		clk.Jump(time.Hour)
		if got := time.Until(clk.Wall()); got != 30*time.Second {
			t.Errorf("time of day after a jump: %v ahead, want 30s", got)
		}
		if clk.Now() != clock.Instant(time.Hour+90*time.Second) {
			t.Errorf("after a jump: %v", clk.Now())
		}
	})
}

// A jump fires what it passes over.
func TestClockJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		soon, late := clock.NewTimer(clk, time.Minute), clock.NewTimer(clk, 2*time.Hour)
		start := time.Now()
		clk.Jump(time.Hour)
		<-soon.C
		if d := time.Since(start); d > time.Microsecond {
			t.Errorf("the timer fired %v after the jump over it", d)
		}
		<-late.C
		if d := time.Since(start).Round(time.Microsecond); d != time.Hour {
			t.Errorf("the other one fired after %v, want 1h", d)
		}
	})
}

// A pause holds timers back and not the clock; at its end all that are overdue fire, each once.
func TestClockPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		var fired atomic.Int64
		clk.AfterFunc(time.Minute, func() { fired.Add(1) })
		clk.Pause()
		clk.AfterFunc(0, func() { fired.Add(1) }) // set by what is paused only now
		stop := clk.AfterFunc(time.Minute, func() { fired.Add(100) })
		later := clk.AfterFunc(2*time.Hour, func() { fired.Add(1000) })
		time.Sleep(time.Hour)
		if fired.Load() != 0 {
			t.Errorf("timers fired during the pause: %d", fired.Load())
		}
		if clk.Now() != clock.Instant(time.Hour) {
			t.Errorf("the clock was paused: %v", clk.Now())
		}
		if !stop() || stop() {
			t.Error("stop of a timer that the pause held back: want true, then false")
		}
		clk.Resume()
		time.Sleep(time.Second)
		if fired.Load() != 2 {
			t.Errorf("after the pause: %d, want the 2 that are overdue", fired.Load())
		}
		if !later() {
			t.Error("the timer that was not due was gone")
		}
	})
}

// A timer set on a clock that stands still fires when it goes on, and at the right reading.
func TestClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		clk.SetRate(0)
		timer := clock.NewTimer(clk, time.Second)
		time.Sleep(time.Hour)
		select {
		case <-timer.C:
			t.Error("a timer fired on a clock that stands still")
		default:
		}
		clk.SetRate(0.5)
		start := time.Now()
		<-timer.C
		if d := time.Since(start).Round(time.Microsecond); d != 2*time.Second {
			t.Errorf("fired after %v, want 2s", d)
		}
	})
}

// Nor does one that is set for years, where floating point has no single nanoseconds left.
func TestClockNeverEarlyInYears(t *testing.T) {
	for _, rate := range []float64{1, 1.0 / 3, 1.11, 0.89, 2.0 / 3, 1.0833, 0.7} {
		synctest.Test(t, func(t *testing.T) {
			clk := clocktest.New(0)
			clk.SetRate(rate)
			for d := range 10 {
				due := clk.Now().Add(365*24*time.Hour + time.Duration(d*7919))
				<-clock.NewTimer(clk, due.Sub(clk.Now())).C
				if now := clk.Now(); now < due {
					t.Errorf("rate %v: fired %v early", rate, due.Sub(now))
				}
			}
		})
	}
}

// Whatever is done to the clock, no timer fires before its reading, and every timer fires once the clock is past it.
func TestClockNeverEarly(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			clk := clocktest.New(clock.Instant(r.Int64N(1e15)))
			const timers = 20
			var fired atomic.Int64
			for range timers {
				d := time.Duration(r.Int64N(int64(time.Minute)))
				due := clk.Now().Add(d)
				clk.AfterFunc(d, func() {
					fired.Add(1)
					if now := clk.Now(); now < due {
						t.Errorf("seed %d: fired %v early", seed, due.Sub(now))
					}
				})
			}
			for range 30 {
				switch r.IntN(6) {
				case 0:
					clk.SetRate(r.Float64() * 3)
				case 1:
					clk.Jump(time.Duration(r.Int64N(int64(time.Second))))
				case 2:
					clk.StepWall(time.Duration(r.Int64N(int64(time.Hour))) - time.Hour/2)
				case 3:
					clk.Pause()
				default:
					clk.Resume()
				}
				time.Sleep(time.Duration(r.Int64N(int64(4 * time.Second))))
			}
			clk.Resume()
			clk.SetRate(1)
			time.Sleep(time.Minute + time.Second)
			if fired.Load() != timers {
				t.Errorf("seed %d: %d of %d timers fired", seed, fired.Load(), timers)
			}
		})
	}
}
