package clock

import (
	"sync"
	"time"
)

// Resolution is the most that a reading of [System] is late by. It is 16 ms on Windows. Elsewhere
// it is 0, which stands for less than a microsecond. A difference of two readings is off by as
// much, in either direction.
const Resolution time.Duration = resolution

// System returns this machine's clock. Reading it takes a fraction of a microsecond and allocates
// nothing. A timer may be due while the machine is suspended. It fires within five seconds of the
// machine's waking up. A shorter interval would cost idle machines more.
func System() Clock { return system{} }

type system struct{}

func (system) Now() Instant { return now() }

// Wall strips the monotonic reading: time.Time subtracts those where it can, and they don't show
// that the clock was set.
func (system) Wall() time.Time { return time.Now().Round(0) }

// slice is the longest that one runtime timer is trusted to run: those stop during suspension.
const slice = 5 * time.Second

func (s system) AfterFunc(d time.Duration, f func()) func() bool { return start(s.Now().Add(d), d, f) }

// start starts a timer that is due then, as long from now.
func start(due Instant, left time.Duration, f func()) (stop func() bool) {
	t := &slicedTimer{due: due, f: f}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(min(max(left, 0), slice), t.tick)
	return t.stop
}

// slicedTimer looks at the suspend-safe clock once a slice.
type slicedTimer struct {
	due Instant
	f   func()

	mu    sync.Mutex
	done  bool // fired or stopped
	timer *time.Timer
}

func (t *slicedTimer) tick() {
	t.mu.Lock()
	if t.done {
		t.mu.Unlock()
		return
	}
	if left := t.due.Sub(now()); left > 0 {
		t.timer.Reset(min(left, slice))
		t.mu.Unlock()
		return
	}
	t.done = true
	t.mu.Unlock()
	t.f()
}

func (t *slicedTimer) stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return false
	}
	t.done = true
	t.timer.Stop()
	return true
}
