//go:build darwin || freebsd || dragonfly

package file

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// checkFS refuses a folder on a file system that isn't of this machine alone, by the kernel's word
// and name for it. It reports false: nothing here proves that a process lives.
func checkFS(dir string, allowFUSE bool) (vouch bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, fmt.Errorf("%s: its file system can't be told: %w", dir, err)
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	return false, judgeFS(dir, name, uint64(st.Flags)&unix.MNT_LOCAL != 0, allowFUSE) //nolint:unconvert // other widths elsewhere
}

func judgeFS(dir, name string, local, allowFUSE bool) error {
	switch {
	case strings.Contains(strings.ToLower(name), "fuse"):
		if !allowFUSE {
			return fmt.Errorf("%s: on a FUSE file system (%s), whose locks and syncs can't be relied on: put the file on a local disk, or set AllowFUSE if this one keeps both", dir, name)
		}
	case !local:
		return fmt.Errorf("%s: on a network file system (%s), where file locks don't hold between machines: put the file on a local disk, or use an engine with a server", dir, name)
	}
	return nil
}

// freeSpace returns how many bytes dir's file system has left for this user.
func freeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // other widths elsewhere
}
