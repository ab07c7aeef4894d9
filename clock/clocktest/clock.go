// Package clocktest has the clock of one node in a test.
package clocktest

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// Clock is the clock of one node in a test. It follows the time package, so inside a
// [testing/synctest] bubble it is wholly virtual. Several clocks in one bubble are several
// machines. A test can make its rate wrong, set its wall clock, and pause it as a process is
// stopped. It is safe for concurrent use.
type Clock struct {
	mu         sync.Mutex
	rate       float64       // seconds of this clock in one true second
	trueAnchor time.Time     // when rate was set
	anchor     clock.Instant // what this clock showed then
	wallOffset time.Duration
	paused     bool
	timers     map[*fakeTimer]struct{}
}

// New returns a clock that shows origin now, runs at the true rate, and shows the true time of day.
func New(origin clock.Instant) *Clock {
	return &Clock{rate: 1, trueAnchor: time.Now(), anchor: origin, timers: map[*fakeTimer]struct{}{}}
}

// SetRate makes the clock run at rate from now on: 1.1 is 10 % fast, 0.5 half as fast, 0 stands
// still. The reading itself does not jump. The wall clock runs at the same rate.
func (f *Clock) SetRate(rate float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wall := f.wall()
	f.anchor, f.trueAnchor = f.now(), time.Now()
	f.rate = max(rate, 0)
	f.wallOffset += wall.Sub(f.wall())
	f.rearm()
}

// StepWall sets the wall clock forward by d, or back when d is negative. [clock.Clock.Now] does not
// change.
func (f *Clock) StepWall(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wallOffset += d
}

// Jump moves the reading of [clock.Clock.Now] forward by d, and the wall clock with it. The clock
// of a suspended virtual machine does so when its host tells it how long it slept.
func (f *Clock) Jump(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.anchor = f.anchor.Add(d)
	f.wallOffset += d
	f.rearm()
}

// Pause stops what runs on this clock as SIGSTOP, a long garbage collection or a suspension does.
// The clock itself continues, but no timer fires until [Clock.Resume]. Then all overdue timers
// fire.
func (f *Clock) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = true
	f.rearm()
}

// Resume ends a [Clock.Pause].
func (f *Clock) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = false
	f.rearm()
}

// Now implements [clock.Clock].
func (f *Clock) Now() clock.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now()
}

// Wall implements [clock.Clock].
func (f *Clock) Wall() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall()
}

func (f *Clock) now() clock.Instant {
	return f.anchor.Add(time.Duration(float64(time.Since(f.trueAnchor)) * f.rate))
}

func (f *Clock) wall() time.Time {
	elapsed := time.Duration(float64(time.Since(f.trueAnchor)) * f.rate)
	return f.trueAnchor.Add(elapsed + f.wallOffset)
}

// AfterFunc implements [clock.Clock].
func (f *Clock) AfterFunc(d time.Duration, fn func()) func() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{clock: f, due: f.now().Add(d), fn: fn}
	f.timers[t] = struct{}{}
	t.arm()
	return t.stop
}

func (f *Clock) rearm() {
	for t := range f.timers {
		t.arm()
	}
}

type fakeTimer struct {
	clock *Clock
	due   clock.Instant
	fn    func()
	timer *time.Timer
}

// arm sets the true timer again. The clock's lock is held.
func (t *fakeTimer) arm() {
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.clock.paused || t.clock.rate == 0 {
		return
	}
	left := float64(t.due.Sub(t.clock.now())) / t.clock.rate
	// One nanosecond more than the quotient, which may have been rounded down: a timer must not
	// fire early.
	t.timer = time.AfterFunc(time.Duration(min(max(left, 0), 1<<62))+1, t.fire)
}

func (t *fakeTimer) fire() {
	f := t.clock
	f.mu.Lock()
	_, waiting := f.timers[t]
	if !waiting || f.paused {
		f.mu.Unlock()
		return
	}
	if f.now() < t.due {
		t.arm()
		f.mu.Unlock()
		return
	}
	delete(f.timers, t)
	f.mu.Unlock()
	t.fn()
}

func (t *fakeTimer) stop() bool {
	f := t.clock
	f.mu.Lock()
	defer f.mu.Unlock()
	_, waiting := f.timers[t]
	delete(f.timers, t)
	if t.timer != nil {
		t.timer.Stop()
	}
	return waiting
}
