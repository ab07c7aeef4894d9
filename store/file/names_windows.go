package file

import (
	"os"

	"golang.org/x/sys/windows"
)

// checkNames refuses a file that has another name, under which others would have another log and
// another lock.
func checkNames(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // it isn't there, or the next step says why it can't be used
	}
	defer func() { _ = f.Close() }()
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err == nil && info.NumberOfLinks > 1 {
		return manyLinks(path, uint64(info.NumberOfLinks))
	}
	return nil
}
