package file

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const fuseMagic = 0x65735546

// remote names the file systems that other machines may see too. Their locks hold on one machine
// only, or by a protocol whose failures look like success.
var remote = map[int64]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9p", 0x00c36400: "Ceph",
	0x5346414f: "AFS", 0x6b414653: "AFS", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x7461636f: "OCFS2",
	0x01161970: "GFS2", 0x19830326: "BeeGFS", 0x73757245: "Coda", 0x564c: "NCP", 0x786f4256: "VirtualBox shared folder",
	0xbacbacbc: "VMware shared folder", 0xaad7aaea: "PanFS", 0x20030528: "OrangeFS",
}

// checkFS refuses a folder on a file system where the store's locks don't hold between all who see
// it. It reports whether those locks prove that a process lives: with FUSE another mount of the
// same files may have locks of its own.
func checkFS(dir string, allowFUSE bool) (vouch bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, fmt.Errorf("%s: its file system can't be told: %w", dir, err)
	}
	magic := int64(uint32(st.Type))
	return magic != fuseMagic, judgeFS(dir, magic, allowFUSE)
}

func judgeFS(dir string, magic int64, allowFUSE bool) error {
	if name, ok := remote[magic]; ok {
		return fmt.Errorf("%s: on a network file system (%s), where file locks don't hold between machines: put the file on a local disk, or use an engine with a server", dir, name)
	}
	if magic == fuseMagic && !allowFUSE {
		return fmt.Errorf("%s: on a FUSE file system, whose locks and syncs can't be relied on: put the file on a local disk, or set AllowFUSE if this one keeps both", dir)
	}
	return nil
}

// freeSpace returns how many bytes dir's file system has left for this user.
func freeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // other widths on 32 bits
}
