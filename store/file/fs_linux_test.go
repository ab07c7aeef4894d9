package file

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileSystems(t *testing.T) {
	for _, c := range []struct {
		magic     int64
		allowFUSE bool
		want      string // in the error; "" for none
	}{
		{unix.EXT4_SUPER_MAGIC, false, ""},
		{unix.XFS_SUPER_MAGIC, false, ""},
		{unix.BTRFS_SUPER_MAGIC, false, ""},
		{unix.TMPFS_MAGIC, false, ""},
		{unix.OVERLAYFS_SUPER_MAGIC, false, ""},
		{unix.NFS_SUPER_MAGIC, false, "network file system (NFS)"},
		{unix.NFS_SUPER_MAGIC, true, "network file system (NFS)"},
		{unix.SMB2_SUPER_MAGIC, false, "network file system (SMB2)"},
		{unix.CIFS_SUPER_MAGIC, false, "network file system (CIFS)"},
		{unix.V9FS_MAGIC, false, "network file system (9p)"},
		{unix.CEPH_SUPER_MAGIC, false, "network file system (Ceph)"},
		{unix.AFS_SUPER_MAGIC, false, "network file system (AFS)"},
		{unix.OCFS2_SUPER_MAGIC, false, "network file system (OCFS2)"},
		{unix.FUSE_SUPER_MAGIC, false, "set AllowFUSE"},
		{unix.FUSE_SUPER_MAGIC, true, ""},
	} {
		err := judgeFS("/mnt", c.magic, c.allowFUSE)
		if (err == nil) != (c.want == "") || (err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "local disk"))) {
			t.Errorf("%#x, FUSE %v: %v; want %q", c.magic, c.allowFUSE, err, c.want)
		}
	}
}
