package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes has the program start in a process group of its own, and get a signal when this
// process dies.
func attributes(death syscall.Signal, as *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death, Credential: as.credential()}
}

// children returns the processes that pid started. Some servers give theirs process groups of their
// own.
func children(pid int) []int {
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		if _, parent := status(name); parent != pid {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// running reports whether the process is there and not merely waiting to be reaped.
func running(pid int) bool {
	state, _ := status(fmt.Sprintf("/proc/%d/stat", pid))
	return state != "" && state != "Z" && state != "X"
}

// stopped reports whether no thread of the process runs, or will before it is told to.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range threads {
		if state, _ := status(name); strings.Trim(state, "TtZX") != "" {
			return false
		}
	}
	return true
}

// status returns the state and the parent of a process out of its stat file, or nothing when it is
// gone.
func status(name string) (state string, parent int) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", 0
	}
	end := strings.LastIndex(string(text), ") ") // of the program's name, which may hold anything
	words := strings.Fields(string(text[end+1:]))
	if len(words) < 2 {
		return "", 0
	}
	parent, err = strconv.Atoi(words[1])
	if err != nil {
		return "", 0
	}
	return words[0], parent
}
