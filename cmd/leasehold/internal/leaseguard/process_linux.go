package leaseguard

import (
	"os"
	"strconv"
	"syscall"
)

// endMarked kills what has the mark in its environment, and reports whether there was anything. It
// finds what has left group and session, and whose parent has ended; not what was started with
// another environment, or runs as another user where this process may not look at that.
func endMarked(mark string) (left bool) {
	for _, pid := range Processes() {
		if HasMark(pid, mark) {
			left = true
			SignalIf(pid, syscall.SIGKILL, func() bool { return HasMark(pid, mark) })
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
		if state, in := standing(stat); in == strconv.Itoa(group) && state != "Z" && state != "X" {
			return true
		}
	}
	return false
}

// standing returns the state and the process group in a text as in /proc/PID/stat: after the name
// in brackets, which may hold anything, the first field and the third one.
func standing(stat []byte) (state, group string) {
	after := len(stat)
	for after > 0 && stat[after-1] != ')' {
		after--
	}
	var fields [3]string
	i := 0
	for _, c := range stat[after:] {
		switch {
		case c != ' ' && i < len(fields):
			fields[i] += string(rune(c))
		case i < len(fields) && fields[i] != "":
			i++
		}
	}
	return fields[0], fields[2]
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
	return err == nil && contains(env, mark)
}

// contains is what package bytes has: see the comment of this package.
func contains(text []byte, part string) bool {
	for i := 0; i+len(part) <= len(text); i++ {
		if string(text[i:i+len(part)]) == part {
			return true
		}
	}
	return false
}

// System calls that package syscall doesn't know. On all processors that programs are released for
// they have these numbers.
const (
	sysPidfdSendSignal = 424
	sysPidfdOpen       = 434
)

// SignalIf sends a signal to a process that is, at the moment, one of those that are meant: a
// number may be another's by now.
func SignalIf(pid int, sig syscall.Signal, meant func() bool) {
	fd, _, err := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	switch {
	case err == syscall.ENOSYS:
		if meant() {
			_ = syscall.Kill(pid, sig)
		}
	case err == 0:
		if meant() {
			_, _, _ = syscall.Syscall6(sysPidfdSendSignal, fd, uintptr(sig), 0, 0, 0, 0)
		}
		_ = syscall.Close(int(fd))
	}
}
