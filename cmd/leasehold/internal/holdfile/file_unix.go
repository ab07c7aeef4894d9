//go:build unix

package holdfile

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
}

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is a symbolic link, which could lead to the file of another hold: name the file itself")
	}
	return f, err
}

func lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// inspect refuses a file that isn't this user's alone, and returns how many names it has.
func inspect(f *os.File, path string) (links uint64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular() || !ok:
		return 0, fmt.Errorf("%s: not a regular file: want one that `leasehold acquire --hold` has made", path)
	case int(st.Uid) != os.Geteuid():
		return 0, fmt.Errorf("%s: of user %d, not of this one (%d): only the user who acquired a name has the right to its hold", path, st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return 0, fmt.Errorf("%s: of mode %#o: other users could have read its secret: run chmod 600 %s, or release the hold and acquire again", path, info.Mode().Perm(), path)
	case st.Nlink > 1:
		return 0, fmt.Errorf("%s: the file has %d names: remove the others", path, st.Nlink)
	}
	return uint64(st.Nlink), nil //nolint:unconvert // other widths elsewhere
}
