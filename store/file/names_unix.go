//go:build unix && !linux && !solaris && !aix

package file

import "golang.org/x/sys/unix"

// checkNames refuses a file that has another name, under which others would have another log and
// another lock.
func checkNames(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err == nil && st.Nlink > 1 {
		return manyLinks(path, uint64(st.Nlink)) //nolint:unconvert // other widths elsewhere
	}
	return nil
}
