//go:build unix && !linux

package servers

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes has the program start in a process group of its own. There is no parent-death signal
// here.
func attributes(_ syscall.Signal, as *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
}

// children returns the processes that pid started. Some servers give theirs process groups of their
// own.
func children(pid int) []int {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil // it has none
	}
	var all []int
	for _, word := range strings.Fields(string(out)) {
		if child, err := strconv.Atoi(word); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// stopped takes the signal's word for it.
func stopped(int) bool { return true }

func running(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
