package mutate

import (
	"os"
	"os/exec"
	"syscall"
)

// apart gives tests mounts of their own where that is allowed: those of a test that a mutant stops
// in its middle go with it.
func apart(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
}
