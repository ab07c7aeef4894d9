package clock

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestNow(t *testing.T) {
	clk := System()
	last := clk.Now()
	for range 10000 {
		now := clk.Now()
		if now < last {
			t.Fatalf("the clock went back from %d to %d", last, now)
		}
		last = now
	}
	// Each reading lies between two of the runtime's clock, however long this goroutine is kept from going on.
	outer := time.Now()
	before := clk.Now()
	inner := time.Now()
	if err := Sleep(t.Context(), clk, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	least := time.Since(inner)
	passed := clk.Now().Sub(before)
	most := time.Since(outer)
	const slack = 20 * time.Millisecond // more than the two clocks' steps
	if passed < 20*time.Millisecond || passed < least-slack || passed > most+slack {
		t.Errorf("%v passed, and %v to %v on the runtime's clock", passed, least, most)
	}
	from := time.Now()
	wall := clk.Wall()
	if to := time.Now(); wall.Before(from.Add(-time.Second)) || wall.After(to.Add(time.Second)) {
		t.Errorf("the time of day is %v, between %v and %v", wall, from, to)
	}
}

// Two times with monotonic readings are as far apart as those, however the clock of the machine was set between them.
func TestFinding_I2_TheWallClockHasNoMonotonicReading(t *testing.T) {
	before := System().Wall()
	if before != before.Round(0) {
		t.Errorf("%v has a monotonic reading", before)
	}
}

func TestNowAllocatesNothing(t *testing.T) {
	clk := System()
	if n := testing.AllocsPerRun(1000, func() { clk.Now() }); n != 0 {
		t.Errorf("Now allocates %v times", n)
	}
}

// The timer takes its time from the suspend-safe clock, however often the runtime's timers wake it before: they know
// nothing of a suspension, and a wake-up that comes too soon must not count.
func TestTimerIsNeverEarly(t *testing.T) {
	var wg sync.WaitGroup
	for _, d := range []time.Duration{-1, 0, 1, time.Microsecond, time.Millisecond, 30 * time.Millisecond} {
		wg.Add(1)
		due := System().Now().Add(d)
		System().AfterFunc(d, func() {
			defer wg.Done()
			if early := due.Sub(System().Now()); early > 0 {
				t.Errorf("a timer of %v fired %v early", d, early)
			}
		})
	}
	fired := make(chan Instant, 1)
	timer := &slicedTimer{due: System().Now().Add(30 * time.Millisecond), f: func() { fired <- system{}.Now() }}
	timer.timer = time.AfterFunc(time.Hour, timer.tick)
	for range 100 {
		timer.tick()
	}
	if at := <-fired; at < timer.due {
		t.Errorf("a timer that was woken early fired %v early", timer.due.Sub(at))
	}
	wg.Wait()
}

// A timer longer than a slice takes several, and can be stopped between them.
func TestTimerBeyondOneSlice(t *testing.T) {
	fired := make(chan struct{})
	start := System().Now()
	stopFired := System().AfterFunc(slice+50*time.Millisecond, func() { close(fired) })
	stop := System().AfterFunc(time.Hour, func() { t.Error("a timer of an hour fired") })
	<-fired
	if d := System().Now().Sub(start); d < slice+50*time.Millisecond {
		t.Errorf("fired after %v", d)
	}
	if !stop() || stop() { // it is in its second slice
		t.Error("stop: want true, then false")
	}
	if stopFired() {
		t.Error("a timer was stopped that had fired")
	}
	stopped := &slicedTimer{due: start, f: func() { t.Error("a stopped timer fired") }}
	stopped.timer = time.AfterFunc(time.Hour, stopped.tick)
	if !stopped.stop() || stopped.timer.Stop() {
		t.Error("a timer that was stopped still runs")
	}
	stopped.tick() // as of a runtime timer that went off just before
}

func BenchmarkNow(b *testing.B) {
	clk := System()
	b.ReportAllocs()
	for b.Loop() {
		clk.Now()
	}
}

func BenchmarkWithTimeout(b *testing.B) {
	clk := System()
	b.ReportAllocs()
	for b.Loop() {
		_, cancel := WithTimeout(context.Background(), clk, time.Minute)
		cancel()
	}
}
