package stalltest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

const (
	late     = 50 * time.Millisecond  // a witness that is woken so late has seen a stall
	slow     = 250 * time.Millisecond // so has one whose byte takes so long to be on the disk
	attempts = 10
	patience = 3 * time.Minute // no attempt begins after that
)

// Run runs a test that wants a machine without stalls, again if it failed while there was one: 10
// times at most, and for 3 minutes at most before the last attempt. The test has to do all anew in
// each attempt, and use the t that it is given. It blocks until all is cleaned up.
func Run(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	write, done := disk()
	defer done()
	failure, skipped := judge(t, clock.System(), write, test)
	if skipped {
		t.SkipNow()
	}
	if failure != "" {
		t.Fatal(failure)
	}
}

// Over fails the attempt because something lasted that much longer than it may. The attempt is made
// again only if the machine stalled for so long in it, all stalls together: one that is shorter
// explains nothing. Outside [Run] it is [testing.TB.Errorf].
func Over(t testing.TB, by time.Duration, format string, args ...any) {
	t.Helper()
	if a, ok := t.(*try); ok {
		a.mu.Lock()
		a.over = max(a.over, by)
		a.mu.Unlock()
	}
	t.Errorf(format, args...)
}

// Watch begins to watch the machine, for a measurement that no attempt can be judged by. The
// function that it returns ends that, and returns the longest stall, and for how long it stalled in
// all. It has to be called, once.
func Watch() (stop func() (longest, all time.Duration)) {
	write, done := disk()
	w := watch(clock.System(), write)
	return func() (time.Duration, time.Duration) {
		defer done()
		return w.stop()
	}
}

// disk returns what writes a byte to the disk that temporary files are on, as far as that works.
func disk() (write, done func()) {
	f, err := os.CreateTemp("", "steady-")
	if err != nil {
		return func() {}, func() {}
	}
	write = func() {
		_, _ = f.WriteAt([]byte{0}, 0)
		_ = f.Sync()
	}
	return write, func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// judge makes attempts until one can be judged.
func judge(t testing.TB, clk clock.Clock, write func(), test func(t testing.TB)) (failure string, skipped bool) {
	t.Helper()
	begun := clk.Now()
	for n := 1; ; n++ {
		w := watch(clk, write)
		a := attempt(t, test)
		stall, sum := w.stop()
		if a.skipped || len(a.failures) == 0 {
			return "", a.skipped
		}
		failure := strings.Join(a.failures, "\n")
		if stall < late || sum < a.over {
			return failure, false
		}
		if n == attempts || clk.Now().Sub(begun) > patience {
			return fmt.Sprintf("the machine stalled in each of %d attempts, in the last one for %v:\n%s", n, stall, failure), false
		}
		t.Logf("attempt %d is made again, since the machine stalled for %v in it:\n%s", n, stall, failure)
	}
}

// witness knows for how long the machine, or its disk, has stalled at most.
type witness struct {
	clk     clock.Clock
	cancel  context.CancelFunc
	running sync.WaitGroup
	woken   time.Duration // how late, at most
	asleep  time.Duration // how late, in all
	written time.Duration // within what time, at most
}

func watch(clk clock.Clock, write func()) *witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := &witness{clk: clk, cancel: cancel}
	last := clk.Now()
	w.running.Go(func() { w.sleeps(ctx, last) })
	w.running.Go(func() { w.writes(ctx, write) })
	return w
}

func (w *witness) sleeps(ctx context.Context, last clock.Instant) {
	const nap = 2 * time.Millisecond
	for ctx.Err() == nil {
		_ = clock.Sleep(ctx, w.clk, nap) // an error is the end
		now := w.clk.Now()
		overslept := now.Sub(last) - nap
		w.woken, w.asleep, last = max(w.woken, overslept), w.asleep+max(overslept, 0), now
	}
}

func (w *witness) writes(ctx context.Context, write func()) {
	const pause = 100 * time.Millisecond
	for ctx.Err() == nil {
		before := w.clk.Now()
		write()
		w.written = max(w.written, w.clk.Now().Sub(before))
		_ = clock.Sleep(ctx, w.clk, pause) // an error is the end
	}
}

// stop returns the longest stall, and all of them together.
func (w *witness) stop() (stall, sum time.Duration) {
	w.cancel()
	w.running.Wait()
	if w.written >= slow {
		return max(w.woken, w.written), max(w.asleep, w.written)
	}
	return w.woken, w.asleep
}

// try is one attempt: what the test has for its testing.TB. Its failures are not yet those of the
// test.
type try struct {
	testing.TB
	ctx    context.Context
	cancel context.CancelFunc

	failed atomic.Bool

	mu       sync.Mutex
	over     time.Duration // by how much it exceeded what a stall may explain
	failures []string
	skipped  bool
	cleanups []func()
}

// attempt runs the test once, on a goroutine of its own, since FailNow ends that.
func attempt(t testing.TB, test func(t testing.TB)) *try {
	a := &try{TB: t}
	a.ctx, a.cancel = context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.cleanUp()
		defer a.cancel()
		test(a)
	}()
	<-done
	return a
}

// cleanUp runs the clean-ups, the latest first, though one of them ends the goroutine.
func (a *try) cleanUp() {
	a.mu.Lock()
	n := len(a.cleanups) - 1
	if n < 0 {
		a.mu.Unlock()
		return
	}
	last := a.cleanups[n]
	a.cleanups = a.cleanups[:n]
	a.mu.Unlock()
	defer a.cleanUp()
	last()
}

func (a *try) Context() context.Context { return a.ctx }

func (a *try) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *try) Failed() bool { return a.failed.Load() || a.TB.Failed() }

func (a *try) Fail() { a.say("it failed") }

func (a *try) FailNow() {
	a.Fail()
	runtime.Goexit()
}

func (a *try) Error(args ...any) { a.say(fmt.Sprintln(args...)) }

func (a *try) Errorf(format string, args ...any) { a.say(fmt.Sprintf(format, args...)) }

func (a *try) Fatal(args ...any) {
	a.say(fmt.Sprintln(args...))
	runtime.Goexit()
}

func (a *try) Fatalf(format string, args ...any) {
	a.say(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (a *try) SkipNow() {
	a.mu.Lock()
	a.skipped = true
	a.mu.Unlock()
	runtime.Goexit()
}

func (a *try) Skip(args ...any) {
	a.TB.Log(args...)
	a.SkipNow()
}

func (a *try) Skipf(format string, args ...any) {
	a.TB.Logf(format, args...)
	a.SkipNow()
}

// say notes a failure, and where it was found.
func (a *try) say(text string) {
	a.failed.Store(true)
	where := ""
	var frames [16]uintptr
	for found := runtime.CallersFrames(frames[:runtime.Callers(3, frames[:])]); ; {
		frame, more := found.Next()
		if strings.HasSuffix(frame.File, "_test.go") {
			where += fmt.Sprintf("%s:%d: ", frame.File[strings.LastIndexByte(frame.File, '/')+1:], frame.Line)
		}
		if !more {
			break
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures = append(a.failures, where+strings.TrimSuffix(text, "\n"))
}
