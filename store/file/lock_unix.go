//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func flockOp(f *os.File, op int) error {
	for {
		if err := unix.Flock(int(f.Fd()), op); err != unix.EINTR {
			return err
		}
	}
}

// flock waits for the lock.
func flock(f *os.File) error { return flockOp(f, unix.LOCK_EX) }

// tryFlock takes the lock, or returns errHeld.
func tryFlock(f *os.File) error {
	err := flockOp(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

func funlock(f *os.File) error { return flockOp(f, unix.LOCK_UN) }
