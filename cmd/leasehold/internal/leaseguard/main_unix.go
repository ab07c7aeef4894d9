//go:build unix

package leaseguard

import (
	"os/signal"
	"syscall"
)

// guardMain is the life of a guard process. It outlives what ends the rest of a process group or a
// terminal's session, and ends with the supervisor.
func guardMain() {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	rename(Name)
	in := lines{read: func(b []byte) (int, error) { return readAgain(0, b) }, await: awaitInput}
	watchOver(in.next, now, (*Scope).end)
}

// readAgain reads, however often a signal interrupts that.
func readAgain(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// end kills all of the scope, and reports whether anything is left. What one call ends comes first:
// to look through all processes takes a while on a busy machine. A group that has gone is
// forgotten: its number may be another's.
func (s *Scope) end() (left bool) {
	gone := s.Group == 0 || syscall.Kill(-s.Group, syscall.SIGKILL) == syscall.ESRCH
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
