//go:build unix

package supervise

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal of this process. Its methods do nothing on a nil one.
type terminal struct {
	fd    int
	group int         // process group of this process
	modes *term.State // as they were before the command
}

// openTerminal returns nil when there is none.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	t := &terminal{fd: fd, group: unix.Getpgrp()}
	t.modes, _ = term.GetState(fd)
	return t
}

// wanted reports whether the command is to begin in the foreground: this process is there, standard
// input is a terminal, and standard output is no pipe. With a pipe there may be a pager at its end,
// in the group of this process, which needs the terminal more; the command gets it as soon as it
// reads from it.
func (t *terminal) wanted() bool {
	if t == nil || t.owner() != t.group || !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	out, err := os.Stdout.Stat()
	return err != nil || out.Mode()&os.ModeNamedPipe == 0
}

// owner returns the process group in the foreground.
func (t *terminal) owner() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// give puts a process group into the foreground.
func (t *terminal) give(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }

// hold keeps the terminal from stopping this process when it writes, or takes the terminal back,
// while the command is in the foreground. It comes after the command has been started, which would
// ignore the signal too.
func (t *terminal) hold() {
	if t != nil {
		signal.Ignore(unix.SIGTTOU)
	}
}

// close takes the terminal back from the group of the command, and undoes what a killed command has
// left of its modes.
func (t *terminal) close(command int, killed bool) {
	if t == nil {
		return
	}
	// What the command put into the foreground itself may be gone as well.
	if owner := t.owner(); command > 0 && (owner == command || unix.Kill(-owner, 0) == unix.ESRCH) {
		t.give(t.group)
		if killed && t.modes != nil {
			_ = term.Restore(t.fd, t.modes)
		}
	}
	signal.Reset(unix.SIGTTOU)
	_ = unix.Close(t.fd)
}
