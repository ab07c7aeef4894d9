//go:build !unix

package holdfile

import (
	"fmt"
	"os"
)

func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

func lock(*os.File) error   { return nil }
func unlock(*os.File) error { return nil }

func inspect(f *os.File, path string) (links uint64, err error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file: want one that `leasehold acquire --hold` has made", path)
	}
	return 1, err
}
