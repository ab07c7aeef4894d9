package leaseguard

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// KillCgroup ends all that is in a control group and those inside it, and reports whether anything
// is left.
func KillCgroup(dir string) (left bool) {
	if f, err := os.OpenFile(dir+"/cgroup.kill", os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("1") // what it has not done shows in what is left
		_ = f.Close()
	}
	return Populated(dir)
}

// Populated reports whether anything lives in a control group or inside it.
func Populated(dir string) bool {
	events, err := os.ReadFile(dir + "/cgroup.events")
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV)
	}
	return contains(events, "populated 1")
}

// RemoveCgroup removes a control group in which nothing lives, and those inside it.
func RemoveCgroup(dir string) {
	for _, dir := range Folders(dir) {
		_ = syscall.Rmdir(dir)
	}
}

// Folders returns a folder and those inside it, each after what is inside it.
func Folders(dir string) (all []string) {
	entries, _ := os.ReadDir(dir) // those before an error
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, Folders(dir+"/"+e.Name())...)
		}
	}
	return append(all, dir)
}
