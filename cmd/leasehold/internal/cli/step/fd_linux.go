package step

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
)

// descriptor is one that this process has from its caller. Its open file description, which all who
// inherited it share, has a lock on one byte, drawn at random. The kernel drops the lock when the
// last of them has closed it. So nothing else that uses the file is in the way.
type descriptor struct {
	fd    int
	at    int64    // the byte
	watch *os.File // the same file by another description, which meets the lock
}

// The bytes that are locked: far above what is ever written to the file.
const (
	firstByte = 1 << 40
	lastByte  = 1 << 60
)

// inherited checks a descriptor.
func inherited(fd int) (*descriptor, unix.Stat_t, error) {
	var st unix.Stat_t
	if fd < 0 {
		return nil, st, cli.Usage("--fd is missing: the number of the descriptor that the shell has open")
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	// Those of this program itself have the flag.
	if fd <= 2 || err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, st, cli.Usage("--fd %d: the shell has no such descriptor open for this: write ( leasehold lock --fd 9 NAME || exit; … ) 9>FILE, or exec 9>FILE before", fd)
	}
	how, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err != nil {
		return nil, st, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || how&unix.O_ACCMODE == unix.O_RDONLY {
		return nil, st, cli.Usage("--fd %d: want a regular file that is open for writing, as by %d>FILE", fd, fd)
	}
	if err := cli.NeedProc(); err != nil {
		return nil, st, err
	}
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	watch, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		watch, err = os.OpenFile(name, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, st, fmt.Errorf("descriptor %d: its file can't be opened once more: %w", fd, err)
	}
	return &descriptor{fd: fd, watch: watch}, st, nil
}

// lockDescriptor locks a byte of the descriptor's file, and returns where the hold's file is to be.
func lockDescriptor(fd int) (*descriptor, string, error) {
	d, st, err := inherited(fd)
	if err != nil {
		return nil, "", err
	}
	if held, path := d.find(st); held != nil {
		return nil, "", cli.Usage("--fd %d: it holds a name already (%s): unlock it first, or use another descriptor", fd, path)
	}
	dir, err := runtimeDir()
	if err != nil {
		return nil, "", err
	}
	d.at = firstByte + rand.Int64N(lastByte-firstByte)
	if err := d.set(unix.F_WRLCK); err != nil {
		return nil, "", fmt.Errorf("descriptor %d: its file system has no locks: use a file on a local disk: %w", fd, err)
	}
	return d, filepath.Join(dir, filePrefix(st)+strconv.FormatInt(d.at, 36)), nil
}

func filePrefix(st unix.Stat_t) string {
	return fmt.Sprintf("fd-%d-%d-", st.Dev, st.Ino)
}

func (d *descriptor) set(kind int16) error {
	lock := unix.Flock_t{Type: kind, Start: d.at, Len: 1}
	return unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_SETLK, &lock)
}

// unlock has the keeper see that nobody holds by the descriptor any more.
func (d *descriptor) unlock() { _ = d.set(unix.F_UNLCK) }

// find returns the hold of this very description, among those of the file.
func (d *descriptor) find(st unix.Stat_t) (*descriptor, string) {
	dir, err := runtimeDir()
	if err != nil {
		return nil, ""
	}
	paths, _ := filepath.Glob(filepath.Join(dir, filePrefix(st)+"*"))
	for _, path := range paths {
		_, number, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "fd-"), "-")
		_, number, _ = strings.Cut(number, "-")
		at, err := strconv.ParseInt(number, 36, 64)
		if err != nil {
			continue
		}
		switch own, others := meets(d.fd, at), meets(int(d.watch.Fd()), at); {
		case !own && others: // no lock of one's own description is in the way
			return &descriptor{fd: d.fd, at: at, watch: d.watch}, path
		case !others && abandoned(path):
			_ = os.Remove(path)
		}
	}
	return nil, ""
}

// abandoned reports whether nobody needs the file: its descriptor is closed, and its keeper, which
// would release the name, has ended.
func abandoned(path string) bool {
	file, h, err := holdfile.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return h.Keeper == 0 || errors.Is(unix.Kill(h.Keeper, 0), unix.ESRCH)
}

// meets reports whether a lock on the byte is in the way of fd's description.
func meets(fd int, at int64) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type != unix.F_UNLCK
}

// awaitByte blocks until the lock on the byte is gone.
func awaitByte(fd int, at int64) error {
	for {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
		if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLKW, &lock); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openDescriptor opens the file of the hold that a descriptor has.
func openDescriptor(fd int) (*descriptor, *holdfile.File, holdfile.Hold, error) {
	d, st, err := inherited(fd)
	if err != nil {
		return nil, nil, holdfile.Hold{}, err
	}
	held, path := d.find(st)
	if held == nil {
		return nil, nil, holdfile.Hold{}, fmt.Errorf("descriptor %d: %w", fd, errNotLocked)
	}
	file, h, err := holdfile.Open(path)
	return held, file, h, err
}

// runtimeDir returns the folder for what lasts no longer than the boot, which is this user's alone.
func runtimeDir() (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	dir := filepath.Join(base, "leasehold")
	if !filepath.IsAbs(base) || ownedElse(base) {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("leasehold-%d", os.Geteuid()))
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("the folder for holds by descriptors can't be made: set XDG_RUNTIME_DIR to a folder of this user's: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || ownedElse(dir) || info.Mode().Perm() != 0o700 {
		return "", fmt.Errorf("%s: want a folder of this user's alone, of mode 0700, which it is not (%v): remove it, or set XDG_RUNTIME_DIR", dir, info.Mode())
	}
	return dir, nil
}

// ownedElse reports whether a folder isn't this user's.
func ownedElse(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) != os.Geteuid()
}
