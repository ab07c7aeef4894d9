package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// console is a program at a terminal of its own.
type console struct {
	*program
	screen   *os.File
	screenFD int
	shown    *lockedBuffer
	read     int // how much of what is shown has been expected
}

// onTerminal starts cmd as the leader of a session with a terminal of 250 columns: room for a machine's name of any length.
func (p place) onTerminal(cmd *exec.Cmd) *console {
	p.t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	screen := os.NewFile(uintptr(fd), "/dev/ptmx") // closing it ends a read of it
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 250})
	}
	if err == nil {
		err = keepOutput(fd)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c := &console{program: p.launch(cmd), screen: screen, screenFD: fd, shown: &lockedBuffer{}}
	read := make(chan struct{})
	go func() { // ends when nobody has the terminal any more
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := screen.Read(buf)
			_, _ = c.shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	p.t.Cleanup(func() { // hangs up
		_ = screen.Close()
		<-read
	})
	return c
}

// keepOutput has the keys that send signals throw nothing away. The kernel would do so after it has sent the signal: by then who gets it
// may have written something.
func keepOutput(fd int) error {
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	modes.Lflag |= unix.NOFLSH
	return unix.IoctlSetTermios(fd, unix.TCSETS, modes)
}

func (c *console) send(text string) {
	c.t.Helper()
	if _, err := c.screen.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// expect waits until text is shown, after what was expected before.
func (c *console) expect(text string) {
	c.t.Helper()
	for deadline := time.Now().Add(patienceOfTests); ; time.Sleep(2 * time.Millisecond) {
		shown := c.shown.String()
		if i := strings.Index(shown[c.read:], text); i >= 0 {
			c.read += i + len(text)
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%q is not shown, but %q", text, shown[c.read:])
		}
	}
}

// shell starts an interactive shell with job control.
func (p place) shell() *console {
	p.t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Dir, cmd.Env = p.dir, append(p.command().Env, "PS1=ready> ", "TERM=dumb")
	c := p.onTerminal(cmd)
	c.expect("ready> ")
	return c
}

// foreground reports whether another process group than that of the session's leader has the terminal, and with it its modes.
func (c *console) foreground() bool {
	group, err := unix.IoctlGetInt(c.screenFD, unix.TIOCGPGRP)
	return err == nil && group != c.cmd.Process.Pid
}

const ctrlC, ctrlD, ctrlZ = "\x03", "\x04", "\x1a"

// The command reads from the terminal, and gets its interrupts.
func TestTerminalIsTheCommands(t *testing.T) {
	p := newPlace(t)
	c := p.onTerminal(p.command("run", "job", "--", "sh", "-c",
		`trap "echo interrupted; exit 9" INT; read x; echo "got $x"; while :; do sleep 0.01; done`))
	c.send("hello\r")
	c.expect("got hello")
	c.send(ctrlC)
	c.expect("interrupted")
	if code := c.code(); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
}

// While it waits, a line shows for whom; an interrupt ends it, and the line is gone.
func TestTerminalShowsTheWait(t *testing.T) {
	p := newPlace(t)
	holder := p.start("run", "job", "--", "sh", "-c", "echo $LEASEHOLD_HOLDER >holder; until [ -e done ]; do sleep 0.01; done")
	owner := p.content("holder")
	c := p.onTerminal(p.command("run", "job", "--", "echo", "it is", "mine"))
	c.expect("waiting for job (")
	c.expect(owner)
	c.send(ctrlC)
	c.expect("\r\x1b[K")
	if code := c.code(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	c = p.onTerminal(p.command("run", "job", "--", "echo", "it is", "mine"))
	c.expect(owner)
	p.write("done")
	c.expect("\r\x1b[Kit is mine")
	if holder.code() != 0 || c.code() != 0 {
		t.Error("holder or waiter failed")
	}
}

// ctrl-Z gives the shell back, fg the command, which reads on.
func TestJobControl(t *testing.T) {
	p := newPlace(t)
	c := p.shell()
	c.send("leasehold run job --ttl 1h -- sh -c 'echo u''p; while read x; do echo \"got $x\"; done; exit 7'\r")
	c.expect("\nup") // before, the shell would read what is typed
	c.send("one\r")
	c.expect("got one")
	c.send(ctrlZ)
	c.expect("job is killed in ") // when the validity ends
	c.expect("Stopped")
	c.expect("ready> ")
	c.send("echo still-$((40+2))\r")
	c.expect("still-42")
	c.send("fg\r")
	c.expect("leasehold run")
	eventually(t, "the job is in the foreground", c.foreground)
	c.send("two\r")
	c.expect("got two")
	c.send(ctrlD)
	c.expect("ready> ")
	c.send("echo code=$?\r")
	c.expect("code=7")
}

// A job in the background stops when it reads, as any does, and goes on in the foreground.
func TestJobInTheBackground(t *testing.T) {
	p := newPlace(t)
	c := p.shell()
	c.send("leasehold run job --ttl 1h -- sh -c 'read x; echo \"got $x\" >got; exit 7' &\r")
	c.expect("ready> ")
	eventually(t, "the job is stopped", func() bool {
		c.send("jobs\r")
		time.Sleep(20 * time.Millisecond)
		return strings.Contains(c.shown.String(), "Stopped")
	})
	c.send("fg\r")
	eventually(t, "the job is in the foreground", c.foreground)
	c.send("hello\r")
	if got := p.content("got"); got != "got hello" {
		t.Error(got)
	}
	c.send("echo code=$?\r")
	c.expect("code=7")
}

// In a pipeline the command gets the terminal when it reads from it.
func TestPipelineReadsTheTerminal(t *testing.T) {
	p := newPlace(t)
	c := p.shell()
	c.send("leasehold run job --ttl 1h -- sh -c 'echo >up; read x </dev/tty; echo \"got $x\"' | tr a-z A-Z\r")
	p.content("up")
	eventually(t, "the job is in the foreground", c.foreground)
	c.send("hello\r")
	c.expect("GOT HELLO")
	c.expect("ready> ")
}

// The lease ends while the job is stopped: the command never goes on.
func TestStoppedPastValidity(t *testing.T) { stalltest.Run(t, stoppedPastValidity) }

func stoppedPastValidity(t testing.TB) {
	p := newPlace(t)
	c := p.shell()
	c.send("leasehold run job --ttl 4s -- ticker ticks stubborn\r")
	p.ticked("ticks")
	c.send(ctrlZ)
	c.expect("Stopped")
	reader := p.reader()
	rec, written := reader.record("job")
	next := p.start("run", "job", "--", "true")
	if code := next.code(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	c.send("fg\r")
	c.expect("lost: job: ") // whether the lease is found to have ended first, or the command
	c.expect("ready> ")
	c.send("echo code=$?\r")
	c.expect("code=79")
	if end := written.Add(validity(rec)); p.lastTick("ticks") >= end {
		t.Errorf("it ran on for %v after the end of its validity", p.lastTick("ticks").Sub(end))
	}
}

// Without a shell that could continue it, ctrl-Z stops nothing for good.
func TestStopWithoutShell(t *testing.T) {
	p := newPlace(t)
	c := p.onTerminal(p.command("run", "job", "--", "sh", "-c", `echo up; read x; echo "got $x"`))
	c.expect("up")
	c.send(ctrlZ)
	c.send("hello\r")
	c.expect("got hello")
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
