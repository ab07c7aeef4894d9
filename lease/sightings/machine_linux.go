package sightings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// boot returns what tells this boot of this machine, and the time namespace, from others: where
// CLOCK_BOOTTIME is one clock.
func boot() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("the boot id can't be read: %w", err)
	}
	if strings.TrimSpace(string(id)) == "" {
		return "", errors.New("the boot id is empty")
	}
	parts := []string{string(id)}
	for _, path := range []string{"/etc/machine-id", "/proc/self/timens_offsets"} {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parts = append(parts, string(text))
	}
	namespace, err := os.Readlink("/proc/self/ns/time")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // before Linux 5.6 there is but one
		return "", err
	}
	return hash(append(parts, namespace)...), nil
}

// local are the file systems that one machine has for itself. A list of those that several share
// would never be complete.
var local = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true,
	unix.OVERLAYFS_SUPER_MAGIC: true, unix.F2FS_SUPER_MAGIC: true, unix.RAMFS_MAGIC: true, unix.NILFS_SUPER_MAGIC: true,
	0x2fc12fc1: true /* ZFS */, 0xca451a4e: true /* bcachefs */, 0x3153464a: true, /* JFS */
}

// checkDir refuses a folder that others may write to: other users, or other machines.
func checkDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s: mode %04o, of user %d: want a folder of user %d that nobody else may write to", dir, st.Mode&0o7777, st.Uid, os.Geteuid())
	}
	var sys unix.Statfs_t
	if err := unix.Statfs(dir, &sys); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if magic := int64(uint32(sys.Type)); !local[magic] {
		return fmt.Errorf("%s: on a file system (type %#x) that other machines may share: want one on a local disk", dir, magic)
	}
	return nil
}

// readFile reads a file of this user's that nobody else may read or write.
func readFile(path string) (text []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 || st.Size > maxBytes {
		return nil, fmt.Errorf("%s: not a small file of user %d alone", path, os.Geteuid())
	}
	return io.ReadAll(io.LimitReader(f, maxBytes))
}
