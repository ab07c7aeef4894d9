//go:build unix

package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// Process is a command that runs, with all that it started. It implements [Work].
type Process struct {
	cmd     Command
	pid     int // of the command, and of its process group
	guard   *guard
	tty     *terminal // nil without one
	signals chan os.Signal

	children chan os.Signal // SIGCHLD
	ended    bool           // the command has been reaped; for serve only

	mu      sync.Mutex // keeps signals from a group that is gone, whose number may be another's by then
	absent  bool       // the group is gone
	family  *family
	lastRun atomic.Int64

	exited, gone chan struct{}
	status       Status // set before either is closed
}

// pollLeft is the pause between two looks at whether anything is left, where no signal tells.
const pollLeft = 10 * time.Millisecond

// Start runs c in a process group of its own, under a guard, and forwards to the group every signal that this process is
// sent. When this process runs in the foreground of a terminal that is its standard input, the group gets the terminal.
//
// One Process at a time: it reaps every child of this program that nobody else here waits for.
func Start(c Command) (*Process, error) {
	if err := adopt(); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	g, err := startGuard()
	if err != nil {
		return nil, fmt.Errorf("start the guard process: %w", err)
	}
	p := &Process{
		cmd: c, guard: g, family: newFamily(c.Clock, g.pid),
		signals: make(chan os.Signal, 64), children: make(chan os.Signal, 1),
		exited: make(chan struct{}), gone: make(chan struct{}),
	}
	if !c.Detached {
		p.tty = openTerminal()
	}
	g.forget()
	signal.Notify(p.children, unix.SIGCHLD)
	signal.Notify(p.signals, forwarded(c.Detached)...)
	started := make(chan error)
	go p.fork(started)
	if err := <-started; err != nil {
		p.stop()
		return nil, err
	}
	go p.serve()
	return p, nil
}

// fork starts the command and keeps the thread that did until all is over: with its end the kernel would kill the command.
func (p *Process) fork(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &unix.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	if p.tty.wanted() {
		attr.Foreground, attr.Ctty = true, p.tty.fd
	}
	err := p.exec(attr)
	started <- err
	if err == nil {
		<-p.gone
	}
}

// exec starts the command.
func (p *Process) exec(attr *unix.SysProcAttr) error {
	in := os.Stdin
	if p.cmd.Detached {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer func() { _ = null.Close() }()
		in = null
	}
	proc, err := os.StartProcess(p.cmd.Path, p.cmd.Args, &os.ProcAttr{Env: p.cmd.Env, Files: []*os.File{in, os.Stdout, os.Stderr}, Sys: attr})
	if err == nil {
		p.pid = proc.Pid
		_ = proc.Release() // reap waits for it
	}
	return err
}

// settle is how long the rest of a command has to end with it, before it counts as left behind: the other parts of a
// pipeline, say.
const settle = 50 * time.Millisecond

// serve passes signals on and reaps, until nothing is left.
func (p *Process) serve() {
	p.tty.hold()
	settled := clock.Never
	for {
		p.reap()
		var timer *clock.Timer
		var poll <-chan struct{}
		if p.ended {
			now := p.cmd.Clock.Now()
			settled = min(settled, now.Add(settle))
			if !p.left() {
				break
			}
			if now >= settled && !closed(p.exited) {
				close(p.exited)
			}
			timer = clock.NewTimer(p.cmd.Clock, pollLeft)
			poll = timer.C
		}
		select {
		case sig := <-p.signals:
			p.forward(sig.(unix.Signal))
		case <-p.children:
		case <-poll:
		}
		timer.Stop()
	}
	p.stop()
	close(p.gone) // before exited: nothing was left behind
	if !closed(p.exited) {
		close(p.exited)
	}
}

// stop gives back what Start took.
func (p *Process) stop() {
	signal.Stop(p.signals)
	signal.Stop(p.children)
	p.tty.close(p.pid, p.status.Signal != nil)
	p.guard.close()
}

// reap takes note of the command if it has ended or stopped, and of all others that are nobody's.
func (p *Process) reap() {
	for !p.ended {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(p.pid, &ws, unix.WNOHANG|unix.WUNTRACED, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
		switch {
		case ws.Stopped():
			p.stopped(ws.StopSignal())
		case ws.Signaled():
			p.status, p.ended = Status{Signal: ws.Signal()}, true
		case ws.Exited():
			p.status, p.ended = Status{Code: ws.ExitStatus()}, true
		}
	}
	command := p.pid
	if p.ended {
		command = 0 // its number may be another's by now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.family.reap(command)
}

// left reports whether there is anything left of the command, which itself has been reaped.
func (p *Process) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.absent {
		p.absent = unix.Kill(-p.pid, 0) == unix.ESRCH
	}
	return !p.absent || len(p.family.orphans()) > 0
}

// signal sends sig to the group, and to orphans outside it if they are to have it too.
func (p *Process) signal(sig unix.Signal, orphans bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.absent {
		_ = unix.Kill(-p.pid, sig)
	}
	if !orphans {
		return
	}
	for _, pid := range p.family.orphans() { // children of this process: their numbers are theirs until it reaps them
		if group, err := unix.Getpgid(pid); err == nil && group != p.pid {
			_ = unix.Kill(pid, sig)
		}
	}
}

// Terminate implements [Work]: SIGTERM, and SIGCONT, without which a stopped process would not notice.
func (p *Process) Terminate() {
	p.signal(unix.SIGTERM, true)
	p.signal(unix.SIGCONT, true)
}

// Kill implements [Work].
func (p *Process) Kill() { p.signal(unix.SIGKILL, true) }

// KillBy implements [Work]: the guard sees to it.
func (p *Process) KillBy(t clock.Instant) {
	p.lastRun.Store(int64(t))
	p.guard.killBy(p.pid, t)
}

// Exited implements [Work].
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone implements [Work].
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Status returns how the command ended, once Exited is closed.
func (p *Process) Status() Status { return p.status }
