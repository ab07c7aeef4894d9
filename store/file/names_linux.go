package file

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// checkNames refuses a file that others may reach by another name: then they have another log and
// another lock. A file that isn't there yet has no other name.
func checkNames(path string) error {
	var file, dir unix.Statx_t
	const want = unix.STATX_NLINK | unix.STATX_MNT_ID
	if err := unix.Statx(unix.AT_FDCWD, path, 0, want, &file); err != nil {
		return nil //nolint:nilerr // it isn't there, or the next step says why it can't be used
	}
	if file.Nlink > 1 {
		return manyLinks(path, uint64(file.Nlink))
	}
	if err := unix.Statx(unix.AT_FDCWD, filepath.Dir(path), 0, want, &dir); err != nil {
		return fmt.Errorf("%s: its folder can't be looked at: %w", path, err)
	}
	if file.Mask&dir.Mask&unix.STATX_MNT_ID != 0 && file.Mnt_id != dir.Mnt_id {
		return fmt.Errorf("%s: the file is mounted by itself, so that it has another name elsewhere, with another log and lock there: "+
			"mount its folder instead (-v /srv/leases:/data and file:/data/%s)", path, filepath.Base(path))
	}
	return nil
}
