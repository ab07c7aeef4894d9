package file

import (
	"fmt"
	"strings"

	"golang.org/x/sys/windows"
)

// checkFS refuses a folder on a volume that isn't known to be this machine's alone. It reports
// false: nothing here proves that a process lives.
func checkFS(dir string, _ bool) (vouch bool, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return false, fmt.Errorf("%s: its volume can't be told: %w", dir, err)
	}
	var root, system [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumePathName(path, &root[0], uint32(len(root))); err != nil {
		return false, fmt.Errorf("%s: its volume can't be told: %w", dir, err)
	}
	if err := windows.GetVolumeInformation(&root[0], nil, 0, nil, nil, nil, &system[0], uint32(len(system))); err != nil {
		return false, fmt.Errorf("%s: the file system of volume %s can't be told: %w", dir, windows.UTF16ToString(root[:]), err)
	}
	return false, judgeVolume(dir, windows.UTF16ToString(root[:]), windows.UTF16ToString(system[:]), windows.GetDriveType(&root[0]))
}

// local are the file systems on which LockFileEx and FlushFileBuffers are known to do what they
// say.
var local = []string{"NTFS", "ReFS"}

func judgeVolume(dir, root, system string, kind uint32) error {
	switch kind {
	case windows.DRIVE_REMOTE:
		return fmt.Errorf("%s: on a network file system (%s, %s), where file locks don't hold between machines: put the file on a local disk, or use an engine with a server", dir, root, system)
	case windows.DRIVE_FIXED, windows.DRIVE_REMOVABLE, windows.DRIVE_RAMDISK:
	default:
		return fmt.Errorf("%s: volume %s is of a kind (%d) that isn't known to be a local disk: put the file on one", dir, root, kind)
	}
	for _, name := range local {
		if strings.EqualFold(name, system) {
			return nil
		}
	}
	return fmt.Errorf("%s: on file system %s (%s), whose locks can't be relied on: put the file on NTFS or ReFS", dir, system, root)
}

// freeSpace returns how many bytes dir's file system has left for this user.
func freeSpace(dir string) (int64, bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}
