//go:build unix

package shardchild

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
)

// Child is a command that runs under a host. Its methods are safe for concurrent use, and none
// blocks but [Child.Started].
type Child struct {
	cmd    Command
	proc   *os.Process
	begun  chan struct{} // closed when the command runs, or can't be started
	failed error         // set before begun is closed, if it can't
	gone   chan struct{} // closed when nothing of the command is left

	mu sync.Mutex
	// pipe is written without blocking: a host that hangs must not hang the worker. -1 when closed.
	pipe   int
	told   clock.Instant
	status supervise.Status
	reaped bool // its number may be another's
	ended  bool // the host has said how the command ended
	lost   bool // because the validity was about to end
}

// ErrHost is the error of a command whose host has ended before it had started it.
var ErrHost = errors.New("the process that was to supervise it has ended")

// Start starts a host, and has it start the command: [Child.Started] tells whether that runs. A
// host that was stopped before that continues with [Child.Wake].
func Start(c Command) (*Child, error) {
	life, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ch := &Child{cmd: c, begun: make(chan struct{}), gone: make(chan struct{}), pipe: -1, told: c.Until}
	err = ch.launch(w)
	_ = w.Close() // the host has its own
	if err != nil {
		_ = life.Close()
		return nil, fmt.Errorf("start the process that supervises it: %w", err)
	}
	go ch.read(life)
	return ch, nil
}

// Started blocks until the command runs or can't be started. The error is that of the system then,
// as of [supervise.Start]. When over is closed before, Started ends the command as [Child.End]
// does.
func (c *Child) Started(over <-chan struct{}) error {
	select {
	case <-c.begun:
	case <-over:
		c.End()
		<-c.begun
	}
	return c.failed
}

// launch starts the host in a session of its own: what the terminal sends to the worker's group is
// for the worker.
func (c *Child) launch(life *os.File) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	self, err := executable()
	if err != nil {
		return fmt.Errorf("this program can't find itself: %w", err)
	}
	text, err := json.Marshal(order{
		Path: c.cmd.Path, Args: c.cmd.Args, Env: c.cmd.Env, Contain: c.cmd.Contain, Timing: c.cmd.Timing, Until: c.cmd.Until, Proofs: len(c.cmd.Proof),
	})
	if err != nil {
		return err
	}
	if c.pipe, err = unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return err
	}
	c.proc, err = os.StartProcess(self, []string{Name, Arg}, &os.ProcAttr{
		Env: []string{}, Files: append([]*os.File{r, os.Stdout, os.Stderr, life}, c.cmd.Proof...), Sys: &unix.SysProcAttr{Setsid: true},
	})
	if err != nil {
		c.close()
		return err
	}
	_ = r.Close()
	if _, err := w.Write(append(text, '\n')); err != nil { // the host ends by itself
		c.close()
		return nil
	}
	return unix.SetNonblock(c.pipe, true)
}

// executable is the program as it was started, even if its file has been replaced since.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// read takes what the host says, until host and guards are gone.
func (c *Child) read(life *os.File) {
	defer func() { _ = life.Close() }()
	in := bufio.NewScanner(life)
	started, failed := false, ErrHost
	for in.Scan() {
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case saysStarted:
			started = true
			close(c.begun)
		case saysFailed:
			failed = failure(rest)
		default:
			c.hear(word, rest)
		}
	}
	_, _ = c.proc.Wait()
	c.mu.Lock()
	c.reaped = true
	c.mu.Unlock()
	c.close()
	close(c.gone)
	if !started {
		c.failed = failed
		close(c.begun)
	}
}

// hear takes a word of the host about a command that has been started.
func (c *Child) hear(word, rest string) {
	switch word {
	case saysNotice:
		if n, err := strconv.Atoi(rest); err == nil && c.cmd.Tell != nil {
			c.cmd.Tell(supervise.Notice(n)) //nolint:gosec // a number below five
		}
	case saysGuards:
		if text, err := strconv.Unquote(rest); err == nil && c.cmd.Guards != nil {
			c.cmd.Guards(errors.New(text))
		}
	case saysEnded:
		var code, sig int
		var lost bool
		if _, err := fmt.Sscanf(rest, "%d %d %t", &code, &sig, &lost); err != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.status, c.ended, c.lost = supervise.Status{Code: code}, true, lost
		if sig != 0 {
			c.status.Signal = syscall.Signal(sig)
		}
	}
}

// startError is an error as the host has told it, with the number of the system's, if there is one.
type startError struct {
	text string
	no   syscall.Errno
}

// Error implements error.
func (e *startError) Error() string { return e.text }

// Unwrap returns the error of the system.
func (e *startError) Unwrap() error {
	if e.no == 0 {
		return nil
	}
	return e.no
}

func failure(rest string) error {
	no, text, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(no)
	if err != nil {
		return ErrHost
	}
	if text, err = strconv.Unquote(text); err != nil {
		return ErrHost
	}
	return &startError{text, syscall.Errno(n)} //nolint:gosec // it came from one
}

// tell writes a line. Where the pipe is full, the host ends the command by what it knows.
func (c *Child) tell(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(line)
}

func (c *Child) write(line string) {
	if c.pipe >= 0 {
		_, _ = unix.Write(c.pipe, []byte(line+"\n"))
	}
}

func (c *Child) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pipe >= 0 {
		_ = unix.Close(c.pipe)
	}
	c.pipe = -1
}

// Until says until when the validity lasts.
func (c *Child) Until(t clock.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t != c.told {
		c.told = t
		c.write(wordUntil + " " + strconv.FormatInt(int64(t), 10))
	}
}

// Wake lets the host go on if it was stopped: else nobody would end the command in peace.
func (c *Child) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ws unix.WaitStatus
	if c.reaped {
		return
	}
	if pid, err := unix.Wait4(c.proc.Pid, &ws, unix.WNOHANG|unix.WUNTRACED, nil); err == nil && pid == c.proc.Pid {
		c.reaped = !ws.Stopped()
		if ws.Stopped() {
			_ = unix.Kill(c.proc.Pid, unix.SIGCONT)
		}
	}
}

// Drain has the command end in peace: SIGTERM, and SIGKILL after the drain time.
func (c *Child) Drain() { c.tell(wordDrain) }

// End has the command end in a hurry: SIGTERM, and SIGKILL after the kill-after time, or before the
// validity ends.
func (c *Child) End() { c.tell(wordEnd) }

// Gone is closed when nothing of the command is left.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Status returns how the command ended, once it is gone, and whether that was since the validity
// was about to end. known is false where the host was killed.
func (c *Child) Status() (s supervise.Status, lost, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, c.lost, c.ended
}
