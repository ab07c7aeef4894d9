//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
)

// guard is the supervisor's end of a guard. Its pipe is written without blocking: a guard that
// hangs must not hang the supervisor.
type guard struct {
	pid  int
	proc *os.Process
	pipe int
}

// startGuard starts this very program once more, as a guard, in a session of its own. The first
// line is in its pipe before it starts: a supervisor that is killed at any moment leaves no guard
// that doesn't know what to end.
func startGuard(first string, argv []string, proof []*os.File) (*guard, error) {
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
	g := &guard{}
	if g.pipe, err = unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, err
	}
	if err = unix.SetNonblock(g.pipe, true); err == nil {
		g.tell(first)
		g.proc, err = os.StartProcess(self, argv, &os.ProcAttr{
			Dir: "/", Env: leaseguard.Environ(), Files: append([]*os.File{r, null, null}, proof...), Sys: &unix.SysProcAttr{Setsid: true},
		})
	}
	if err != nil {
		_ = unix.Close(g.pipe)
		return nil, err
	}
	g.pid = g.proc.Pid
	return g, nil
}

// executable is the program as it was started, even if its file has been replaced since.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// blind reports whether the kernel is too old for waiting by file descriptor.
func (g *guard) blind() bool {
	return errors.Is(g.proc.WithHandle(func(uintptr) {}), os.ErrNoHandle)
}

// forget leaves it to the supervisor's reaper to wait for the guard.
func (g *guard) forget() { _ = g.proc.Release() }

// tell writes a line. If the pipe is full or broken, the other guard, and the supervisor's own
// timer, are what remains.
func (g *guard) tell(line string) { _, _ = unix.Write(g.pipe, []byte(line)) }

func (g *guard) close() { _ = unix.Close(g.pipe) }
