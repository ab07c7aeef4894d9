//go:build unix

package elect

import (
	"os/exec"
	"syscall"
)

// whole has the end of cmd's context end all that cmd has started, too.
func whole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
