package supervise

import (
	"bytes"
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
	last := listChildren()
	for {
		next := listChildren()
		if slices.Equal(last, next) {
			return next
		}
		last = next
	}
}

func listChildren() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, task := range tasks {
		list, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
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

// hasEnded reports whether a child has ended, all its threads included, or is no child any more.
func hasEnded(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == unix.ECHILD || err == nil && info.Signo != 0
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
