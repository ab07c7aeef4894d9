//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// withFD calls do with f's descriptor, again while a signal interrupts it. Until do returns, the
// number stands for f: when f is closed meanwhile, no other file gets it, whose locks would be
// taken for those of f.
func withFD(f *os.File, do func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var outcome error
	err = conn.Control(func(fd uintptr) {
		for outcome = unix.EINTR; errors.Is(outcome, unix.EINTR); {
			outcome = do(fd)
		}
	})
	if err != nil {
		return err
	}
	return outcome
}

func flockOp(f *os.File, op int) error {
	return withFD(f, func(fd uintptr) error { return unix.Flock(int(fd), op) })
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
