//go:build unix

package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// GuardMain is the life of a guard process. It outlives what ends the rest of a process group or a terminal's session, and
// ends with the supervisor.
func GuardMain() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	Guard(os.Stdin, clock.System(), func(group int) { _ = unix.Kill(-group, unix.SIGKILL) })
}

// guard is the supervisor's end of its guard.
type guard struct {
	pid  int
	proc *os.Process

	mu   sync.Mutex
	pipe int // written without blocking: a guard that hangs must not hang the supervisor; -1 once closed
}

// startGuard starts this very program once more, as a guard, in a session of its own.
func startGuard() (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("this program can't find itself: %w", err)
	}
	proc, err := os.StartProcess(self, []string{os.Args[0], GuardArg}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{r, null, null}, Sys: &unix.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	g := &guard{pid: proc.Pid, proc: proc}
	if g.pipe, err = unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
		err = unix.SetNonblock(g.pipe, true)
	}
	return g, err
}

// executable is the program as it was started, even if its file has been replaced since.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// forget leaves it to the supervisor's reaper to wait for the guard.
func (g *guard) forget() { _ = g.proc.Release() }

// killBy tells the guard. If the pipe is full or broken, the supervisor's own timer is what remains.
func (g *guard) killBy(group int, t clock.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = unix.Write(g.pipe, []byte(guardLine(group, t)))
}

// close lets the guard go: nothing is left for it to kill.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = unix.Write(g.pipe, []byte(guardDone+"\n"))
	_ = unix.Close(g.pipe)
	g.pipe = -1
}
