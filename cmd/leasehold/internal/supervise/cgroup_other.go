//go:build unix && !linux

package supervise

import (
	"errors"

	"golang.org/x/sys/unix"
)

// cgroup is nothing here: only Linux has control groups.
type cgroup struct{ dir string }

func newCgroup() (*cgroup, error) { return nil, errors.New("this system has no control groups") }

func (*cgroup) kill() {}

func (*cgroup) populated() bool { return false }

func (*cgroup) signal(unix.Signal, func(int) bool) {}

func (*cgroup) close() {}

func (*cgroup) startIn(*unix.SysProcAttr) {}
