package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// fakeWork is a command that ends when it is killed, and when it is terminated unless it is stubborn.
type fakeWork struct {
	clk      clock.Clock
	stubborn bool
	dying    time.Duration // from the signal to the end

	mu                          sync.Mutex
	terminated, killed, endedAt clock.Instant
	guard                       clock.Instant
	ending                      bool
	exited, gone, unguarded     chan struct{}
}

func newFakeWork(clk clock.Clock, stubborn bool) *fakeWork {
	return &fakeWork{
		clk: clk, stubborn: stubborn, dying: 20 * time.Millisecond,
		exited: make(chan struct{}), gone: make(chan struct{}), unguarded: make(chan struct{}),
	}
}

func (w *fakeWork) end() {
	if w.ending {
		return
	}
	w.ending = true
	w.clk.AfterFunc(w.dying, func() {
		w.mu.Lock()
		w.endedAt = w.clk.Now()
		w.mu.Unlock()
		w.exit()
		close(w.gone)
	})
}

func (w *fakeWork) exit() {
	if !closed(w.exited) {
		close(w.exited)
	}
}

func (w *fakeWork) Terminate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.terminated == 0 {
		w.terminated = w.clk.Now()
	}
	if !w.stubborn {
		w.end()
	}
}

func (w *fakeWork) Kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed == 0 {
		w.killed = w.clk.Now()
	}
	w.end()
}

func (w *fakeWork) KillBy(t clock.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.guard = t
}

func (w *fakeWork) Exited() <-chan struct{} { return w.exited }
func (w *fakeWork) Gone() <-chan struct{}   { return w.gone }

func (w *fakeWork) Unguarded() <-chan struct{} { return w.unguarded }

// bench is one supervised command on a store that can be cut off.
type bench struct {
	t      *testing.T
	clk    *clocktest.Clock
	db     *memory.DB
	outage faulty.Outage
	m      *lease.Manager
	l      *lease.Lease
	w      *fakeWork
	timing Timing
	lost   chan bool
	told   []Notice
}

// newBench acquires "job" in the present bubble and starts a command under it.
func newBench(t *testing.T, timing Timing, stubborn bool) *bench {
	t.Helper()
	b := &bench{t: t, clk: clocktest.New(sec), timing: timing, lost: make(chan bool, 1)}
	b.db = memory.NewDB(memory.Options{Clock: b.clk})
	st := faulty.Wrap(b.db.Open(), b.outage.Plan(nil))
	t.Cleanup(func() { _ = st.Close() })
	var err error
	b.m, err = lease.NewManager(st, lease.Options{TTL: timing.TTL, Renew: timing.Renew(), Clock: b.clk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.m.Close() })
	if b.l, err = b.m.Acquire(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	b.w = newFakeWork(b.clk, stubborn)
	go func() { b.lost <- Watch(b.l, b.w, timing, b.clk, func(n Notice) { b.told = append(b.told, n) }) }()
	return b
}

// over waits for the end, and checks what holds at every end.
func (b *bench) over() (lost bool) {
	b.t.Helper()
	lost = <-b.lost
	if !closed(b.w.gone) {
		b.t.Error("Watch returned before all was gone")
	}
	return lost
}

// An outage as long as Survives says stops nothing, whenever in the cycle of renewals it begins: 6 s with the defaults. `leasehold plan`
// says the same. Renewals and retries have random parts, so each offset is tried several times.
func TestFinding_I6_AnOutageThatIsSurvivedEndsNobody(t *testing.T) {
	const rounds, steps = 2, 40
	for _, timing := range []Timing{{}, {TTL: 4 * time.Second, KillAfter: -1}} {
		timing = timing.WithDefaults()
		for step := range steps {
			offset := timing.Renew() * time.Duration(step) / steps
			for round := range rounds {
				for _, refusal := range []error{nil, errors.New("connection refused")} {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t, timing, false)
						time.Sleep(2*timing.Renew() + offset)
						if refusal == nil {
							b.outage.Start()
						} else {
							b.outage.StartRefusing(refusal)
						}
						time.Sleep(timing.Survives())
						b.outage.End()
						time.Sleep(2 * timing.TTL)
						if b.w.terminated != 0 || b.w.killed != 0 {
							t.Errorf("offset %v, round %d: terminated %v after the outage began", offset, round, b.w.terminated)
						}
						if err := b.l.Check(); err != nil {
							t.Errorf("offset %v, round %d: %v", offset, round, err)
						}
						b.w.Kill()
						if b.over() {
							t.Error("lost")
						}
					})
				}
			}
		}
	}
}

// The outage that never ends: SIGTERM, then SIGKILL, and all is gone before the validity ends, and so before any other
// process may take the name.
func TestPitfall_C1_GoneBeforeValidityEnds(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
		for part := range 10 {
			synctest.Test(t, func(t *testing.T) {
				timing := Timing{TTL: ttl}.WithDefaults()
				b := newBench(t, timing, true)
				time.Sleep(timing.Renew() * time.Duration(20+part) / 10)
				b.outage.Start()
				synctest.Wait()
				until := b.l.ValidUntil()
				if !b.over() {
					t.Error("not lost")
				}
				w := b.w
				if w.terminated == 0 || w.killed < w.terminated.Add(timing.KillAfter) || w.killed.Sub(w.terminated) > timing.KillAfter+timing.Slack() {
					t.Errorf("terminated at %v, killed at %v: want %v between them", w.terminated, w.killed, timing.KillAfter)
				}
				if w.endedAt >= until {
					t.Errorf("it ended %v after its validity", w.endedAt.Sub(until))
				}
				if w.guard <= w.killed || w.guard >= until {
					t.Errorf("the guard was to kill at %v: want it between %v and %v", w.guard, w.killed, until)
				}
				if fmt.Sprint(b.told) != fmt.Sprint([]Notice{Terminated, Killed}) {
					t.Errorf("told %v", b.told)
				}
			})
		}
	}
}

// A command that ends when it is told to is not killed.
func TestTerminatedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Timing{}.WithDefaults(), false)
		b.outage.Start()
		until := b.l.ValidUntil()
		if !b.over() || b.w.killed != 0 || b.w.terminated == 0 || b.w.endedAt >= until {
			t.Errorf("terminated at %v, killed at %v, ended at %v, validity %v", b.w.terminated, b.w.killed, b.w.endedAt, until)
		}
	})
}

// A break ends the command within a renewal and KillAfter, and the name is free only after that.
func TestBreakTerminatesAtOnce(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			timing := Timing{}.WithDefaults()
			b := newBench(t, timing, stubborn)
			time.Sleep(time.Second)
			at := b.clk.Now()
			admin := b.db.Open()
			defer admin.Close()
			_, err := drive.Break(t.Context(), admin, "job", drive.EndTerm{Token: b.l.Token(), By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if !b.over() {
				t.Error("not lost")
			}
			limit := at.Add(timing.Renew() + timing.KillAfter + time.Second)
			if b.w.terminated == 0 || b.w.endedAt > limit || stubborn != (b.w.killed != 0) {
				t.Errorf("broken at %v: terminated at %v, killed at %v, ended at %v", at, b.w.terminated, b.w.killed, b.w.endedAt)
			}
			var lost *lease.LostError
			if err := context.Cause(b.l.Context()); !errors.As(err, &lost) || lost.Cause != lease.CauseBroken {
				t.Errorf("cause %v", err)
			}
		})
	}
}

// A pause of the whole process past the validity: nothing runs on for longer than it takes to kill it.
func TestPausedPastValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Timing{}.WithDefaults(), true)
		time.Sleep(3 * time.Second)
		b.clk.Pause()
		time.Sleep(time.Minute)
		b.clk.Resume()
		if !b.over() || b.w.killed == 0 || b.w.terminated != 0 {
			t.Errorf("terminated at %v, killed at %v: want a kill and nothing before", b.w.terminated, b.w.killed)
		}
	})
}

// Who is asked to end, and doesn't, is killed after Drain; its lease goes on until then.
func TestAskedToEnd(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			timing := Timing{Drain: time.Minute}.WithDefaults()
			b := newBench(t, timing, stubborn)
			asked, told := make(chan struct{}), []Notice(nil)
			w := newFakeWork(b.clk, stubborn)
			lost := make(chan bool)
			go func() { lost <- WatchUntil(asked, b.l, w, timing, b.clk, func(n Notice) { told = append(told, n) }) }()
			time.Sleep(time.Second)
			at := b.clk.Now()
			close(asked)
			if <-lost || w.terminated != at || b.l.Check() != nil {
				t.Errorf("asked at %v, terminated at %v: %v", at, w.terminated, b.l.Check())
			}
			want := []Notice{Asked}
			if stubborn {
				want = append(want, Killed)
			}
			if took := w.killed.Sub(at).Round(time.Millisecond); stubborn != (w.killed != 0) || stubborn && took != timing.Drain || fmt.Sprint(told) != fmt.Sprint(want) {
				t.Errorf("killed after %v; told %v", took, told)
			}
			b.w.Kill()
			b.over()
		})
	}
}

// What the command leaves behind is ended before Watch returns, with the lease still held.
func TestLeftovers(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			timing := Timing{}.WithDefaults()
			b := newBench(t, timing, stubborn)
			time.Sleep(time.Minute)
			at := b.clk.Now()
			b.w.exit()
			if b.over() {
				t.Error("lost")
			}
			if b.w.terminated != at || stubborn && b.w.killed.Sub(at).Round(time.Millisecond) != timing.KillAfter {
				t.Errorf("exited at %v: terminated at %v, killed at %v", at, b.w.terminated, b.w.killed)
			}
			if err := b.l.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
