package cli

import (
	"errors"
	"os"
	"runtime"
)

// NeedProc returns an error on a Linux without /proc. Who holds a name for a command starts its own
// program again from there, and finds there what the command has started.
func NeedProc() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return Exit(ExitOwn, errors.New("/proc is not mounted here, so what CMD leaves behind couldn't be found and ended: run mount -t proc proc /proc, in a chroot before you enter it"))
	}
	return nil
}
