package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// serve is the goroutine that reads for the waiters, and has another one listen while there are
// any.
func (w *Waiters) serve() {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	for w.ctx.Err() == nil {
		if waiting, _ := w.state(); waiting {
			if stop == nil {
				stop = w.listen()
			}
			w.attend()
			continue
		}
		if stop == nil {
			select {
			case <-w.kick:
			case <-w.ctx.Done():
			}
		} else if w.sleep(w.clk.Now().Add(linger), w.kick) {
			stop()
			stop = nil
		}
	}
}

// attend reads for the waiters until there are none.
func (w *Waiters) attend() {
	pause, failed := pollMin, 0
	var due clock.Instant // to look at everybody
	again := func(after time.Duration) { due = w.clk.Now().Add(after) }
	if _, listening := w.state(); listening {
		again(netMin + rand.N(netMax-netMin))
	} else {
		again(jitter(pause))
	}
	for everybody := false; ; {
		those, all := w.take(everybody)
		found, err := w.look(those)
		waiting, listening := w.state()
		switch {
		case w.ctx.Err() != nil || !waiting:
			return
		case err != nil:
			if failed++; failed >= giveUp {
				deliver(those, err)
			}
			again(jitter(min(retryMin<<failed, pollMax)))
		case listening && all:
			again(netMin + rand.N(netMax-netMin))
		case all && !found && failed == 0:
			pause = min(pause*3/2, pollMax)
			again(jitter(pause))
		case !listening && (all || pause > pollMin): // somebody new: look more often again
			pause = pollMin
			again(jitter(pause))
		}
		if err == nil {
			failed = 0
		}
		kick := w.kick
		if failed > 0 { // whatever is told would fail, too, and the next look is at everybody
			kick = nil
		}
		everybody = w.sleep(due, kick)
	}
}

// sleep blocks until due, and returns true, or until somebody kicks or the set is closed.
func (w *Waiters) sleep(due clock.Instant, kick <-chan struct{}) bool {
	left := due.Sub(w.clk.Now())
	if left <= 0 {
		return true // whoever kicks
	}
	timer := clock.NewTimer(w.clk, left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-kick:
	case <-w.ctx.Done():
	}
	return false
}

// look reads for those who are due and wakes whom it found something for. Nobody gets what was read
// before it came: those who are due had come before.
func (w *Waiters) look(due map[Want]*asked) (found bool, err error) {
	wants := make([]Want, 0, min(len(due), batch))
	flush := func() error {
		ctx, cancel := context.WithTimeout(w.ctx, readLimit)
		defer cancel()
		results, err := w.src.Read(ctx, wants)
		if err != nil {
			return err
		}
		for i, r := range results {
			want := wants[i]
			switch {
			case r.Err != nil: // a version that can't be read isn't known
			case r.Changed:
				w.saw(want.Key, r.Rec.Version, due[want].news)
			default:
				w.saw(want.Key, want.Version, due[want].news)
			}
			if r.Changed || r.Err != nil {
				found = true
				for _, me := range due[want].by {
					me.wake(r)
				}
			}
		}
		wants = wants[:0]
		return nil
	}
	for want := range due {
		if wants = append(wants, want); len(wants) == batch {
			if err := flush(); err != nil {
				return found, err
			}
		}
	}
	if len(wants) > 0 {
		err = flush()
	}
	return found, err
}

func (me *waiter) wake(r Result) {
	r.Rec = r.Rec.Clone() // each caller's own
	select {
	case me.result <- r:
	default: // it was woken before, and hasn't left yet
	}
}

func deliver(due map[Want]*asked, err error) {
	for _, a := range due {
		for _, me := range a.by {
			me.wake(Result{Err: err})
		}
	}
}

// listen has a goroutine listen until stop is called, which waits for it.
func (w *Waiters) listen() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var pause atomic.Int64 // in ns
		for pause.Store(int64(retryMin)); ; pause.Store(min(pause.Load()*2, int64(netMin))) {
			w.restart()
			err := w.src.Listen(ctx, Ear{w, func() { pause.Store(int64(retryMin)) }})
			w.setListening(false)
			if ctx.Err() != nil || errors.Is(err, ErrDeaf) {
				return
			}
			_ = clock.Sleep(ctx, w.clk, jitter(time.Duration(pause.Load())))
		}
	}()
	return func() { cancel(); <-done }
}
