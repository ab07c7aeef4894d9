//go:build unix

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
)

// Of each supervisor there are two guards: one that is killed together with the supervisor leaves
// the other.
const twoGuards = 2

// More guards than replacements in the time of one replacing have something against them: then
// there is no use in starting more.
const (
	replacements = 8
	replacing    = 10 * time.Second
)

// guards are the processes that end a command in the supervisor's stead.
type guards struct {
	clk   clock.Clock
	start func(first string, argv []string) (*guard, error)

	mu       sync.Mutex
	all      []*guard
	scope    leaseguard.Scope
	group    int
	by       clock.Instant // 0 before it is known
	replaced []clock.Instant
	closed   bool
}

// startGuards starts them, and tells them what they are to end.
func startGuards(clk clock.Clock, s leaseguard.Scope, proof []*os.File) (*guards, error) {
	gs := &guards{clk: clk, start: func(first string, argv []string) (*guard, error) { return startGuard(first, argv, proof) }, scope: s}
	for range twoGuards {
		g, err := gs.start(s.Line(), leaseguard.Argv())
		if err != nil {
			gs.close()
			return nil, err
		}
		gs.all = append(gs.all, g)
	}
	return gs, nil
}

// killBy tells them when.
func (gs *guards) killBy(group int, t clock.Instant) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.group, gs.by = group, t
	for _, g := range gs.all {
		g.tell(leaseguard.KillLine(group, int64(t)))
	}
}

// errUnguarded: the supervisor alone is left to end the command, and nothing ends it if the
// supervisor can't.
var errUnguarded = errors.New("no guard process is left, and none can be started")

// look lets guards go on that were stopped, and replaces those that have ended. It returns what
// happened, for people; an error that matches errUnguarded if no guard is left. own is called with
// the number of each new guard before it can be taken for an orphan.
func (gs *guards) look(own func(pid int)) error {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.closed {
		return nil
	}
	var ended, stopped []int
	gs.all = slices.DeleteFunc(gs.all, func(g *guard) bool {
		over, halted := g.ended()
		if halted {
			stopped = append(stopped, g.pid)
		}
		if !over {
			return false
		}
		ended = append(ended, g.pid)
		g.close()
		return true
	})
	var err error
	for len(gs.all) < twoGuards && err == nil && gs.mayReplace() {
		err = gs.replace(own)
	}
	switch {
	case len(gs.all) == 0:
		return errors.Join(errUnguarded, err)
	case len(ended) > 0 && err != nil:
		return fmt.Errorf("guard process %d has ended, and has no successor: %w", ended[0], err)
	case len(ended) > 0:
		return fmt.Errorf("guard process %d has ended; %d has its place", ended[0], gs.all[len(gs.all)-1].pid)
	case len(stopped) > 0:
		return fmt.Errorf("guard process %v was stopped, and continues", stopped)
	}
	return nil
}

// mayReplace reports whether one more may be started. gs.mu is held.
func (gs *guards) mayReplace() bool {
	now := gs.clk.Now()
	gs.replaced = slices.DeleteFunc(gs.replaced, func(t clock.Instant) bool { return now.Sub(t) >= replacing })
	return len(gs.replaced) < replacements
}

// replace starts one more. gs.mu is held.
func (gs *guards) replace(own func(pid int)) error {
	gs.replaced = append(gs.replaced, gs.clk.Now())
	first := gs.scope.Line()
	if gs.by != 0 {
		first += leaseguard.KillLine(gs.group, int64(gs.by))
	}
	g, err := gs.start(first, leaseguard.ArgvAtOnce())
	if err != nil {
		return err
	}
	own(g.pid)
	g.forget()
	gs.all = append(gs.all, g)
	return nil
}

// ended reaps a guard that has ended, and reports whether it had. One that was stopped can't do its
// work, and is let go on.
func (g *guard) ended() (over, stopped bool) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(g.pid, &ws, unix.WNOHANG|unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err == unix.ECHILD, stopped
		case pid == g.pid && ws.Stopped():
			stopped = unix.Kill(g.pid, unix.SIGCONT) == nil
		default:
			return pid == g.pid, stopped
		}
	}
}

// forget leaves it to look to wait for them.
func (gs *guards) forget() {
	for _, g := range gs.all {
		g.forget()
	}
}

// close lets the guards go: nothing is left for them to kill. It waits a moment for their ends, so
// that a supervisor of this program doesn't find them left behind.
func (gs *guards) close() {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, g := range gs.all {
		g.tell(leaseguard.Done + "\n")
		_ = unix.Kill(g.pid, unix.SIGKILL) // before it begins to read, maybe; nobody has reaped it
		g.close()
	}
	gs.closed = true
	late := gs.clk.Now().Add(parting)
	for _, g := range gs.all {
		for over, _ := g.ended(); !over && gs.clk.Now() < late; over, _ = g.ended() {
			_ = clock.Sleep(context.Background(), gs.clk, time.Millisecond)
		}
	}
}

// parting is for how long close waits.
const parting = 300 * time.Millisecond
