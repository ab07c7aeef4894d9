package supervise

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the command when the thread that started it ends.
func dieWithParent(attr *unix.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }

// adopt makes orphans among the descendants children of this process, wherever they went.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children returns the processes whose parent is this one. It is empty where the kernel doesn't
// tell. A child that is reaped while the kernel makes its list may hide another one, so there have
// to be two lists that are the same.
func children() []int {
	if _, err := waitable(unix.P_ALL, 0); errors.Is(err, unix.ECHILD) {
		return nil
	}
	last := listChildren()
	for {
		next := listChildren()
		if slices.Equal(last, next) {
			return next
		}
		last = next
	}
}

func listChildren() (pids []int) {
	const tasks = "/proc/self/task"
	dir, err := unix.Open(tasks, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(dir) }()
	var names []string
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(dir, buf[:])
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	for _, task := range names {
		for field := range strings.FieldsSeq(readAt(dir, task+"/children", buf[:])) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// readAt returns what a file in a folder holds; nothing if it is gone. [os.ReadFile] takes three
// times as long, and there is a file for each thread.
func readAt(dir int, name string, buf []byte) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	var text []byte
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return string(text)
		}
		text = append(text, buf[:n]...)
	}
}

// awaited returns the processes of which this one has a process file descriptor. That is what
// os/exec waits by, so those are somebody's own. A child has one from before it runs until it has
// been waited for.
func awaited() map[int]bool {
	all := map[int]bool{}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return all
	}
	for _, fd := range open {
		what, err := os.Readlink("/proc/self/fd/" + fd.Name())
		// "anon_inode:[pidfd]", or "pidfd:[123]".
		if err != nil || !strings.Contains(what, "pidfd") {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		if err != nil {
			continue // it has been closed
		}
		for line := range strings.Lines(string(info)) {
			if number, ok := strings.CutPrefix(line, "Pid:"); ok {
				if pid, err := strconv.Atoi(strings.TrimSpace(number)); err == nil && pid > 0 {
					all[pid] = true
				}
			}
		}
	}
	return all
}

// anyEnded reports whether any child has ended and is not reaped.
func anyEnded() bool {
	ended, err := waitable(unix.P_ALL, 0)
	return ended || err != nil && !errors.Is(err, unix.ECHILD)
}

// hasEnded reports whether a child has ended, all its threads included, or is no child any more.
func hasEnded(pid int) bool {
	ended, err := waitable(unix.P_PID, pid)
	return ended || errors.Is(err, unix.ECHILD)
}

// waitable reports whether a child that is meant has ended, and reaps none. The error is ECHILD if
// there is no such child.
func waitable(kind, id int) (bool, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			return err == nil && info.Signo != 0, err
		}
	}
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in brackets may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// lastSignal is the highest number of a signal.
const lastSignal = 64

// findsDescendants: orphans come to the supervisor, and marks can be read.
const findsDescendants = true
