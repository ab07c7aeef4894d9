//go:build unix && !solaris && !illumos && !aix

package filemarks

import (
	"errors"
	"os"
	"syscall"
)

// compacts: a file that is open can be replaced.
const compacts = true

func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// unlockFile gives the lock back, which closing alone doesn't while a child that was just forked
// has the file open as well.
func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
