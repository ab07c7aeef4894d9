//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// kept are the signals that are not passed on: two that can't be caught, four that are about this
// process itself (its children, its pipes, two of its runtime), and the two by which a terminal
// stops a background process.
var kept = []unix.Signal{
	unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGPIPE, unix.SIGURG, unix.SIGPROF, unix.SIGTTIN, unix.SIGTTOU,
}

// interrupts are the signals that end this program.
var interrupts = []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM}

// forwarded returns the signals that are passed on to the command: all that can be (Go can't catch
// 32 to 34), but for SIGHUP and SIGINT if this process was started with them ignored, as nohup
// does: then the command ignores them as well. One that is detached gets no interrupts, and no stop
// from the terminal. ownHangup leaves out SIGHUP alone.
func forwarded(detached, ownHangup bool) []os.Signal {
	var all []os.Signal
	for n := 1; n <= lastSignal; n++ {
		sig := unix.Signal(n)
		if detached && (slices.Contains(interrupts, sig) || sig == unix.SIGTSTP) || ownHangup && sig == unix.SIGHUP {
			continue
		}
		if !slices.Contains(kept, sig) && !signal.Ignored(sig) {
			all = append(all, sig)
		}
	}
	return all
}

// Catch keeps what would be passed on to a detached command from ending this program while there is
// none.
func Catch() { signal.Notify(make(chan os.Signal, 1), forwarded(true, true)...) }

func (p *Process) forward(sig unix.Signal) {
	if sig == unix.SIGCONT {
		p.resume()
		return
	}
	p.signal(sig, false)
}

// stopped: the command was stopped by sig. If the user did it from the terminal, or the terminal
// did because the job is in its background, this process stops itself too, so that the shell takes
// notice.
func (p *Process) stopped(sig unix.Signal) {
	fromTerminal := sig == unix.SIGTSTP || sig == unix.SIGTTIN || sig == unix.SIGTTOU
	switch {
	case p.tty == nil:
	case p.tty.owner() == p.tty.group && (sig == unix.SIGTTIN || sig == unix.SIGTTOU):
		p.resume() // the job is in the foreground, and the command wants the terminal
	case fromTerminal || p.tty.owner() == p.pid:
		p.suspend()
	}
}

// suspend stops the process group of this process, as the terminal would have if the command ran in
// it. It returns when the user continues the job, or at once where there is no shell to continue
// it.
//
// The stop is SIGSTOP: Go can't give SIGTSTP its default action back, by which the kernel would
// look for a shell.
func (p *Process) suspend() {
	if p.tty.owner() == p.pid {
		p.tty.give(p.tty.group)
	}
	if orphaned(p.tty.group) {
		p.resume()
		return
	}
	if p.cmd.Suspended != nil {
		p.cmd.Suspended()
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(0, unix.SIGSTOP)
	timer := clock.NewTimer(p.cmd.Clock, stopWait)
	defer timer.Stop()
	select {
	case <-continued:
	case <-timer.C:
	}
	p.resume()
}

// orphaned reports whether nobody outside this process's group, but in its session, is there to
// continue it: the first ancestor outside the group belongs to another session.
func orphaned(group int) bool {
	session, err := unix.Getsid(0)
	for pid := os.Getppid(); err == nil && pid > 1; pid = parentOf(pid) {
		var g, s int
		if s, err = unix.Getsid(pid); err != nil || s != session {
			return true
		}
		if g, err = unix.Getpgid(pid); err == nil && g != group {
			return false
		}
	}
	return true
}

// stopWait is how long this process waits for its own stop to take effect.
const stopWait = 100 * time.Millisecond

// resume lets a stopped command go on, in the foreground if the job is there; unless its time is
// over.
func (p *Process) resume() {
	if last := clock.Instant(p.lastRun.Load()); last != 0 && p.cmd.Clock.Now() >= last {
		p.Kill()
		return
	}
	if p.tty != nil && p.tty.owner() == p.tty.group {
		p.tty.give(p.pid)
	}
	p.signal(unix.SIGCONT, false)
}
