package leaseguard

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endMarked kills what has the mark in its environment, and reports whether there was anything. It
// finds what has left group and session, and whose parent has ended; not what was started with
// another environment, or runs as another user where this process may not look at that.
func endMarked(mark string) (left bool) {
	for _, pid := range Processes() {
		if HasMark(pid, mark) {
			left = true
			SignalIf(pid, unix.SIGKILL, func() bool { return HasMark(pid, mark) })
		}
	}
	return left
}

// groupLives reports whether anything in a process group has not ended. What has, and waits to be
// reaped, doesn't count.
func groupLives(group int) bool {
	for _, pid := range Processes() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}

// Processes returns the numbers of all that can be seen.
func Processes() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1) // those before an error
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// HasMark reports whether a process has the mark in its environment.
func HasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(env, []byte(mark))
}

// SignalIf sends a signal to a process that is, at the moment, one of those that are meant: a
// number may be another's by now.
func SignalIf(pid int, sig unix.Signal, meant func() bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == unix.ENOSYS:
		if meant() {
			_ = unix.Kill(pid, sig)
		}
	case err == nil:
		if meant() {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
		_ = unix.Close(fd)
	}
}
