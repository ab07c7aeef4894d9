//go:build unix

package supervise

import (
	"errors"
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
	guards  *guards
	in      container
	tty     *terminal // nil without one
	signals chan os.Signal

	children chan os.Signal // SIGCHLD
	ended    bool           // the command has been reaped; for serve only

	// Keeps signals from a group that is gone, whose number may be another's by then.
	mu      sync.Mutex
	absent  bool // the group is gone
	family  *family
	lastRun atomic.Int64

	exited, gone, unguarded chan struct{}

	status Status // set before exited and gone are closed
}

// pollLeft is the pause between two looks at whether anything is left, where no signal tells.
const pollLeft = 10 * time.Millisecond

// Start runs c in a process group of its own, contained as it says, under two guards, and forwards
// to the group every signal that this process is sent. When this process runs in the foreground of
// a terminal that is its standard input, the group gets the terminal.
//
// One Process at a time: it reaps every child of this program that nobody else here waits for.
func Start(c Command) (*Process, error) {
	if err := adopt(); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	in, why, err := contained(c.Contain)
	if err != nil {
		return nil, err
	}
	p, err := start(c, in)
	// The kernel may refuse to start anything in it.
	if err != nil && in.cgroup != nil && c.Contain != ContainCgroup {
		if in, _, failed := contained(ContainDescendants); failed == nil {
			why = err
			p, err = start(c, in)
		}
	}
	if err == nil && c.Contained != nil {
		c.Contained(p.in.kind, why)
	}
	return p, err
}

// start starts c in a container, which it gives back if that fails.
func start(c Command, in container) (*Process, error) {
	f := newFamily(c.Clock)
	gs, err := startGuards(c.Clock, in.scope(), c.Proof)
	if err != nil {
		in.cgroup.close()
		return nil, fmt.Errorf("start the guard processes: %w", err)
	}
	f.guardedBy(gs)
	p := &Process{
		cmd: c, guards: gs, in: in, family: f,
		signals: make(chan os.Signal, 64), children: make(chan os.Signal, 1),
		exited: make(chan struct{}), gone: make(chan struct{}), unguarded: make(chan struct{}),
	}
	if !c.Detached {
		p.tty = openTerminal()
	}
	gs.forget()
	signal.Notify(p.children, unix.SIGCHLD)
	signal.Notify(p.signals, forwarded(c.Detached, c.OwnHangup)...)
	started := make(chan error)
	go p.fork(started)
	if err := <-started; err != nil {
		p.stop()
		return nil, err
	}
	go p.serve()
	return p, nil
}

// fork starts the command and keeps the thread that did until all is over: with its end the kernel
// would kill the command.
func (p *Process) fork(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &unix.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	p.in.cgroup.startIn(attr)
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
	proc, err := os.StartProcess(p.cmd.Path, p.cmd.Args, &os.ProcAttr{Env: p.in.environ(p.cmd.Env), Files: []*os.File{in, os.Stdout, os.Stderr}, Sys: attr})
	if err == nil {
		p.pid = proc.Pid
		_ = proc.Release() // reap waits for it
	}
	return err
}

// settle is how long the rest of a command has to end with it, before it counts as left behind: the
// other parts of a pipeline, say.
const settle = 50 * time.Millisecond

// serve passes signals on and reaps, until nothing is left.
func (p *Process) serve() {
	p.tty.hold()
	settled := clock.NoDeadline
	for {
		p.reap()
		p.guarded()
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
	if !p.cmd.Final {
		signal.Stop(p.signals)
	}
	signal.Stop(p.children)
	p.tty.close(p.pid, p.status.Signal != nil)
	p.guards.close()
	p.in.cgroup.close()
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

// guarded sees to it that there are guards.
func (p *Process) guarded() {
	p.mu.Lock()
	err := p.guards.look(func(pid int) { p.family.guards[pid] = true })
	p.mu.Unlock()
	if err == nil || closed(p.unguarded) {
		return
	}
	if p.cmd.Guards != nil {
		p.cmd.Guards(err)
	}
	if errors.Is(err, errUnguarded) {
		close(p.unguarded)
	}
}

// left reports whether there is anything left of the command, which itself has been reaped.
func (p *Process) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.absent {
		p.absent = unix.Kill(-p.pid, 0) == unix.ESRCH
	}
	return !p.absent || p.in.cgroup.populated() || len(p.family.orphans()) > 0
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
	told := func(pid int) bool {
		group, err := unix.Getpgid(pid)
		return err != nil || group == p.pid
	}
	// Children of this process: their numbers are theirs until it reaps them.
	for _, pid := range p.family.orphans() {
		if !told(pid) {
			_ = unix.Kill(pid, sig)
		}
	}
	if sig == unix.SIGKILL {
		p.in.cgroup.kill()
	} else {
		p.in.cgroup.signal(sig, told)
	}
}

// Terminate implements [Work]: SIGTERM, and SIGCONT, without which a stopped process would not
// notice.
func (p *Process) Terminate() {
	p.signal(unix.SIGTERM, true)
	p.signal(unix.SIGCONT, true)
}

// Kill implements [Work].
func (p *Process) Kill() { p.signal(unix.SIGKILL, true) }

// KillBy implements [Work]: the guards see to it.
func (p *Process) KillBy(t clock.Instant) {
	p.lastRun.Store(int64(t))
	p.mu.Lock()
	defer p.mu.Unlock()
	group := p.pid
	if p.absent {
		group = 0
	}
	p.guards.killBy(group, t)
}

// Unguarded implements [Work].
func (p *Process) Unguarded() <-chan struct{} { return p.unguarded }

// Exited implements [Work].
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone implements [Work].
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Status returns how the command ended, once Exited is closed.
func (p *Process) Status() Status { return p.status }
