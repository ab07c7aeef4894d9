package file

import (
	"os"

	"golang.org/x/sys/windows"
)

func lockEx(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|flags, 0, 1, 0, new(windows.Overlapped))
}

// flock waits for the lock.
func flock(f *os.File) error { return lockEx(f, 0) }

// tryFlock takes the lock, or returns errHeld.
func tryFlock(f *os.File) error {
	err := lockEx(f, windows.LOCKFILE_FAIL_IMMEDIATELY)
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return errHeld
	}
	return err
}

func funlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}
