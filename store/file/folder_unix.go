//go:build unix && !solaris && !aix

package file

import "golang.org/x/sys/unix"

// stampOf returns the stamp of the folder of that name, if it can be looked at.
func stampOf(path string) (s stamp, ok bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return stamp{}, false
	}
	return stamp{
		dev: uint64(st.Dev), ino: st.Ino, //nolint:unconvert // other widths elsewhere
		sec: int64(st.Mtim.Sec), nsec: int64(st.Mtim.Nsec), //nolint:unconvert // as above
		csec: int64(st.Ctim.Sec), cnsec: int64(st.Ctim.Nsec), //nolint:unconvert // as above
	}, true
}
