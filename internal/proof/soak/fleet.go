//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/soak/resources"
)

// fleet is the worker processes. It is safe for concurrent use.
type fleet struct {
	config
	dir  string
	host *resources.Host
	hist *history
	clk  clock.Clock

	mu     sync.Mutex
	slots  []*process // by slot, the one that runs now
	procs  []*process // by number, all there ever were
	ending bool
	errs   []error // what went wrong here, not in a worker
}

// process is one worker process.
type process struct {
	slot, proc int
	cmd        *exec.Cmd
	stdin      io.Closer
	ended      chan struct{} // closed when it has ended and all that it told was taken

	mu     sync.Mutex    // held while a signal is sent
	killed clock.Instant // just before SIGKILL was sent; 0 before that
	paused bool
}

// start starts a worker in a slot.
func (f *fleet) start(slot int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending {
		return nil
	}
	p := &process{slot: slot, proc: len(f.procs), ended: make(chan struct{})}
	encoded, err := workerConfig{f.dir, f.Engine, f.Store, slot, p.proc, f.Names, f.TTL, f.Seed, f.Bug, f.host.Addresses}.encode()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), workerEnv+"="+encoded)
	p.cmd.Stderr = os.Stderr
	// A process group of its own, so that Ctrl-C reaches the parent only; and no worker outlives
	// it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	f.slots[slot], f.procs = p, append(f.procs, p)
	go f.follow(p, out) // closes p.ended, for which finish waits
	return nil
}

// follow takes what a worker tells until it ends. One that was killed is replaced.
func (f *fleet) follow(p *process, out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // a last line without its end was cut off by a kill
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			f.wrong(fmt.Errorf("worker %d said %q: %w", p.proc, line, err))
			continue
		}
		f.hist.take(p.proc, e)
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	at, killed := p.killed, p.killed != 0
	p.mu.Unlock()
	if !killed {
		at = f.clk.Now()
	}
	f.hist.died(p.proc, at)
	f.mu.Lock()
	ending := f.ending
	f.mu.Unlock()
	switch {
	case killed:
		err = f.start(p.slot)
	case err != nil:
		err = fmt.Errorf("worker %d ended by itself: %w", p.proc, err)
	case !ending:
		err = fmt.Errorf("worker %d ended by itself", p.proc)
	}
	f.wrong(err)
}

func (f *fleet) wrong(err error) {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errs = append(f.errs, err)
	}
}

// target returns the process that a fault strikes.
func (f *fleet) target(t fault) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.name >= 0 {
		if proc, ok := f.hist.holding(name(t.name)); ok {
			return f.procs[proc]
		}
	}
	return f.slots[t.slot]
}

// kill kills a process, stopped or not, and reports whether it was there.
func (f *fleet) kill(p *process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed != 0 {
		return false
	}
	p.killed = f.clk.Now()
	if p.cmd.Process.Signal(syscall.SIGKILL) != nil { // it has ended already
		p.killed = 0
	}
	return p.killed != 0
}

// pause stops a process, and reports whether it was there and running. If so, resume has to follow.
func (f *fleet) pause(p *process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed != 0 || p.paused {
		return false
	}
	f.hist.stop(p.proc, f.clk.Now())
	p.paused = p.cmd.Process.Signal(syscall.SIGSTOP) == nil
	return p.paused
}

// resume lets a process go on. The window of one that was killed meanwhile has ended with it.
func (f *fleet) resume(p *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = false
	if p.killed != 0 {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		f.wrong(err)
	}
	f.hist.resume(p.proc, f.clk.Now())
}

// finish tells every worker to end and waits for it. It returns how many had to be killed because
// they did not in time.
func (f *fleet) finish(within time.Duration) (stuck int) {
	f.mu.Lock()
	f.ending = true
	procs := f.procs
	f.mu.Unlock()
	for _, p := range procs {
		_ = p.stdin.Close() // which tells it, if it is still there
	}
	deadline, cancel := clock.WithTimeout(context.Background(), f.clk, within)
	defer cancel()
	for _, p := range procs {
		select {
		case <-p.ended:
			continue
		case <-deadline.Done():
		}
		if f.kill(p) {
			stuck++
		}
		<-p.ended
	}
	return stuck
}
