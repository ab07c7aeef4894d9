//go:build unix

package leaseguard

import (
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// guardMain is the life of a guard process. It outlives what ends the rest of a process group or a
// terminal's session, and ends with the supervisor.
func guardMain() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	if runtime.GOOS == "linux" {
		_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // it is for people
	}
	watchOver(os.Stdin, clock.System(), (*Scope).end)
}

// end kills all of the scope, and reports whether anything is left. What one call ends comes first:
// to look through all processes takes a while on a busy machine. A group that has gone is
// forgotten: its number may be another's.
func (s *Scope) end() (left bool) {
	gone := s.Group == 0 || unix.Kill(-s.Group, unix.SIGKILL) == unix.ESRCH
	if s.Cgroup != "" && KillCgroup(s.Cgroup) {
		left = true
	}
	if s.Mark != "" && endMarked(s.Mark) {
		left = true
	}
	if gone || !groupLives(s.Group) {
		s.Group = 0
	} else {
		left = true
	}
	if s.Cgroup != "" && !left {
		RemoveCgroup(s.Cgroup)
	}
	return left
}
