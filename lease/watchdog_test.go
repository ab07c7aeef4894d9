package lease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// kennel counts the bites of a watchdog.
type kennel struct {
	bites int
	last  error
	at    time.Time
}

func (k *kennel) watch(h lease.Holding) (stop func() bool) {
	return lease.Watchdog(h, func(err error) { k.bites, k.last, k.at = k.bites+1, err, time.Now() })
}

// bitten fails unless the dog has bitten once, for that cause.
func (k *kennel) bitten(t *testing.T, cause lease.Cause) {
	t.Helper()
	synctest.Wait()
	var lost *lease.LostError
	if k.bites != 1 || !errors.As(k.last, &lost) || lost.Cause != cause {
		t.Errorf("%d bites, the last for %v; want one for %q", k.bites, k.last, cause)
	}
}

func (k *kennel) quiet(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if k.bites != 0 {
		t.Errorf("%d bites, for %v", k.bites, k.last)
	}
}

// It bites at the end of validity, while nobody else can have the name yet.
func TestWatchdogBitesBeforeOthersStart(t *testing.T) {
	for _, rate := range []float64{1, 0.9, 1.1} { // of the holder's clock
		inWorld(t, func(t *testing.T, w *world) {
			n, other := w.Node(lease.Options{}), w.Node(lease.Options{})
			n.Clk.SetRate(rate)
			other.Clk.SetRate(2 - rate)
			var k kennel
			k.watch(n.Take("job"))
			wait := other.Acquiring(t.Context(), "job")
			time.Sleep(time.Hour)
			k.quiet(t)
			n.Outage.Start()
			start := time.Now()
			wait.Wait(t, start, 2*ttl)
			k.bitten(t, lease.CauseOutage)
			if took := k.at.Sub(start); took > time.Duration(float64(validity)/rate)+time.Millisecond || k.at.After(wait.At) {
				t.Errorf("rate %v: bitten after %v, the name was taken after %v", rate, took, wait.At.Sub(start))
			}
		})
	}
}

func TestWatchdogLetsGo(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, l *lease.Lease, stop func() bool){
		"released":    func(t *testing.T, l *lease.Lease, _ func() bool) { release(t, l) },
		"handed over": func(t *testing.T, l *lease.Lease, _ func() bool) { _ = l.HandOver(t.Context(), "x") },
		"stopped": func(t *testing.T, _ *lease.Lease, stop func() bool) {
			if !stop() || stop() {
				t.Error("stop: want true, then false")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				var k kennel
				stop := k.watch(l)
				leave(t, l, stop)
				if stop() {
					t.Error("it was still there")
				}
				n.Outage.Start()
				time.Sleep(time.Hour)
				k.watch(l) // after the end
				synctest.Wait()
				if name == "stopped" {
					k.bitten(t, lease.CauseOutage)
				} else {
					k.quiet(t)
				}
			})
		})
	}
}

// A process that was stopped past its lease is bitten when it goes on, and not before: that is what a watchdog can't do.
func TestWatchdogOfAProcessThatWasStopped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		var k kennel
		k.watch(n.Take("job"))
		n.Clk.Pause()
		time.Sleep(time.Hour)
		k.quiet(t)
		n.Clk.Resume()
		time.Sleep(time.Millisecond)
		k.bitten(t, lease.CauseExpired)
	})
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		var k kennel
		k.watch(n.Take("job"))
		n.Clk.Jump(time.Hour) // suspended, with the machine
		time.Sleep(time.Millisecond)
		k.bitten(t, lease.CauseExpired)
	})
}

// Every end but a release is a loss; all that a session keeps goes with it.
func TestWatchdogBitesAtEveryLoss(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		var k kennel
		k.watch(l)
		if _, err := newManager(t, w.DB.Open()).Break(t.Context(), "job", lease.EndTerm{Token: l.Token(), By: "operator"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl / 3)
		k.bitten(t, lease.CauseBroken)

		var session, kept, own kennel
		s := n.Open()
		session.watch(s)
		kept.watch(n.Under(s, "a"))
		own.watch(n.Take("own"))
		n.Outage.Start()
		time.Sleep(validity + time.Millisecond)
		session.bitten(t, lease.CauseOutage)
		kept.bitten(t, lease.CauseOutage)
		own.bitten(t, lease.CauseOutage)
	})
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		var k kennel
		k.watch(n.Take("job"))
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		k.bitten(t, lease.CauseClosed)
	})
}

// watchdogChild is the environment variable that makes of a test a process with a watchdog; its value says what befalls it.
const watchdogChild = "LEASEHOLD_WATCHDOG_CHILD"

// stoppable is the TTL of a child that its parent stops. What else befalls one jumps over a TTL of a minute, so that no stall of the
// machine ends its lease before.
const stoppable = time.Second

// child holds a name under a watchdog, and does what no context ends. It never returns if the watchdog works.
func child(fate string) {
	var cut atomic.Bool
	dropped := make(chan bool, 100)
	st := faulty.Wrap(memory.New(memory.Options{}), func(faulty.Op) faulty.Fault {
		if cut.Load() {
			dropped <- true
		}
		return faulty.Fault{Drop: cut.Load()}
	})
	clk, length := clocktest.New(0), time.Minute
	if fate == "stopped" {
		length = stoppable
	}
	jeopardy := make(chan bool, 1)
	m, err := lease.NewManager(st, lease.Options{TTL: length, Clock: clk, OnEvent: func(e lease.Event) {
		if e.State == lease.StateJeopardy {
			jeopardy <- true
		}
	}})
	if err != nil {
		panic(err)
	}
	l, err := m.Acquire(context.Background(), "job")
	if err != nil {
		panic(err)
	}
	fmt.Println("held") // before the watchdog can bite
	lease.Watchdog(l, nil)
	defer fmt.Println("a deferred function ran")
	switch fate {
	case "cut":
		cut.Store(true)
		clk.Jump(length / 3) // to the next renewal
		<-dropped
		clk.Jump(length / 20) // until it is late, and sent again
		<-dropped
		<-jeopardy
		clk.Jump(length)
	case "released":
		if err := l.Release(context.Background()); err != nil {
			panic(err)
		}
		clk.Jump(2 * length)
		_ = clock.Sleep(context.Background(), clock.System(), 100*time.Millisecond)
		os.Exit(3)
	}
	for {
		_ = clock.Sleep(context.Background(), clock.System(), time.Hour)
	}
}

// startChild runs this test as another process with a watchdog, and returns when it holds its name. finish waits for its end.
func startChild(t *testing.T, fate string) (p *os.Process, finish func() (code int, output string)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), watchdogChild+"="+fate)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	held := make([]byte, len("held\n"))
	if _, err := r.Read(held); err != nil {
		t.Fatal(err)
	}
	return cmd.Process, func() (int, string) {
		var out strings.Builder
		_, _ = r.WriteTo(&out)
		r.Close()
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), string(held) + out.String()
	}
}

// By default the watchdog ends the process, and says why.
func TestWatchdogEndsTheProcess(t *testing.T) {
	if fate := os.Getenv(watchdogChild); fate != "" {
		child(fate)
	}
	_, finish := startChild(t, "cut")
	code, out := finish()
	if code != 79 || !strings.Contains(out, "watchdog: lease job (token ") || !strings.Contains(out, string(lease.CauseOutage)) || strings.Contains(out, "deferred") {
		t.Errorf("exit code %d: %s", code, out)
	}
	_, finish = startChild(t, "released")
	if code, out := finish(); code != 3 {
		t.Errorf("released: exit code %d: %s", code, out)
	}
}
