package clock

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Instant is a reading of a [Clock]: nanoseconds since an origin of that clock's own. The origin of
// [System] is the boot of the machine. Readings of different clocks can't be compared, nor can an
// Instant be turned into a date.
type Instant int64

// The earliest and the latest instants. Arithmetic stops there instead of wrapping round.
const (
	NoDeadline Instant = math.MaxInt64 // after every other instant; its work ends by other means
	Ended      Instant = math.MinInt64 // before every other instant: the deadline of what has ended
)

// Add returns the instant d after t. It returns [NoDeadline] or [Ended] where that instant can't be
// represented.
func (t Instant) Add(d time.Duration) Instant {
	sum := t + Instant(d)
	switch {
	case t == NoDeadline || (d > 0 && sum < t):
		return NoDeadline
	case t == Ended || (d < 0 && sum > t):
		return Ended
	}
	return sum
}

// Sub returns how long after u the instant t is. It returns the largest or smallest duration where
// that can't be represented.
func (t Instant) Sub(u Instant) time.Duration {
	d := t - u
	switch {
	case t > u && d < 0:
		return math.MaxInt64
	case t < u && d > 0:
		return math.MinInt64
	}
	return time.Duration(d)
}

// Clock tells the time on one machine. All methods may be called from any goroutine, and none
// blocks.
type Clock interface {
	// Now returns the reading of a monotonic clock, which no one sets. This clock decides.
	Now() Instant
	// Wall returns the time of day by the wall clock, which anyone may set. It is for people to
	// read, and for minting tokens. It never decides whether a lease is valid. It has no monotonic
	// reading, so that a difference of two shows that the clock was set between them.
	Wall() time.Time
	// AfterFunc calls f, in a goroutine of its own, once at least d has passed. The returned stop
	// function prevents the call and reports whether it did. False means that f has been called, or
	// stopped before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// At calls f, in a goroutine of its own, once t has come on c. Any time may pass between the moment
// at which t was worked out and the call of At. With [Clock.AfterFunc] that is not so. The stop
// function is that of AfterFunc.
func At(c Clock, t Instant, f func()) (stop func() bool) { return AtFrom(c, c.Now(), t, f) }

// AtFrom is At for a caller who has just read the clock, at now. It saves a reading of the clock,
// which takes longer than the rest. f is called later by the time that has passed since now.
func AtFrom(c Clock, now, t Instant, f func()) (stop func() bool) {
	if _, ok := c.(system); ok {
		return start(t, t.Sub(now), f)
	}
	return c.AfterFunc(t.Sub(now), f)
}

// Timer fires once. Its channel is closed when it fires.
type Timer struct {
	C    <-chan struct{}
	stop func() bool
}

// NewTimer returns a timer that fires once at least d has passed on c. The caller stops the timer
// when it isn't needed any more.
func NewTimer(c Clock, d time.Duration) *Timer {
	fired := make(chan struct{})
	return &Timer{C: fired, stop: c.AfterFunc(d, func() { close(fired) })}
}

// Stop keeps the timer from firing, and reports whether it did. A nil timer can be stopped.
func (t *Timer) Stop() bool { return t != nil && t.stop() }

// Sleep blocks until d has passed on c, or until ctx is done. It returns nil in the first case, and
// the cause of ctx in the second.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	t := NewTimer(c, d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithTimeout is [context.WithTimeout] on the clock c: suspension counts, and a fake clock decides
// in tests. After the time-out the context's Err and its [context.Cause] are
// [context.DeadlineExceeded]. A context derived from it has that cause, and [context.Canceled] for
// its Err. The context has no Deadline, which would be one of another clock.
func WithTimeout(parent context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := c.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return timeoutCtx{ctx}, func() { stop(); cancel(context.Canceled) }
}

// WithDeadline is WithTimeout for an instant of c.
func WithDeadline(parent context.Context, c Clock, t Instant) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := At(c, t, func() { cancel(context.DeadlineExceeded) })
	return timeoutCtx{ctx}, func() { stop(); cancel(context.Canceled) }
}

// WithLateDeadline is WithDeadline with one difference: nothing looks at the clock before the
// context's Arm is called. It is for work that as a rule is over long before its deadline, and that
// the caller watches meanwhile. That saves a timer.
func WithLateDeadline(parent context.Context, c Clock, t Instant) *LateDeadline {
	l := &LateDeadline{clock: c, at: t}
	l.Context, l.end = context.WithCancelCause(parent)
	return l
}

// LateDeadline is the context that [WithLateDeadline] returns. The caller cancels it when the work
// is over.
type LateDeadline struct {
	context.Context

	clock Clock
	at    Instant
	end   context.CancelCauseFunc

	mu   sync.Mutex
	stop func() bool // nil before it is armed
}

// Err implements [context.Context]. It returns [context.DeadlineExceeded] after the deadline.
func (l *LateDeadline) Err() error { return timeoutCtx{l.Context}.Err() }

// Arm makes the deadline count. A second call, or a call after Cancel, does nothing.
func (l *LateDeadline) Arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil && l.Context.Err() == nil {
		l.stop = At(l.clock, l.at, func() { l.end(context.DeadlineExceeded) })
	}
}

// Cancel ends the context.
func (l *LateDeadline) Cancel() {
	l.end(context.Canceled)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
	}
}

type timeoutCtx struct{ context.Context }

func (c timeoutCtx) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// Resolution is the most that a reading of [System] is late by. It is 16 ms on Windows. Elsewhere
// it is 0, which stands for less than a microsecond. A difference of two readings is off by as
// much, in either direction.
const Resolution time.Duration = resolution

// System returns this machine's clock. Reading it takes a fraction of a microsecond and allocates
// nothing. A timer may be due while the machine is suspended. It fires within five seconds of the
// machine's waking up. A shorter interval would cost idle machines more.
func System() Clock { return system{} }

// system has its Now in a file of each operating system: now_linux.go and its siblings.
type system struct{}

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
	if left := t.due.Sub(system{}.Now()); left > 0 {
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
