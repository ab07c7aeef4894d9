//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedBits returns the mode of a file that is made in dir: 0 unless dir passes its group on and
// the group may write there. The umask is not to take that away from the other members.
func sharedBits(dir string) fs.FileMode {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSetgid == 0 || info.Mode().Perm()&0o070 != 0o070 {
		return 0
	}
	return info.Mode().Perm() & 0o664
}

// share gives a file that this process has just made the mode that all members of the group need.
// It works on the open file: a name might lead elsewhere by now.
func share(f *os.File) {
	bits := sharedBits(filepath.Dir(f.Name()))
	info, err := f.Stat()
	if bits == 0 || err != nil || !mine(info) {
		return
	}
	if info.IsDir() {
		bits |= (bits&0o444)>>2 | fs.ModeSetgid
	}
	_ = f.Chmod(bits) // who then can't use the file says so
}

// makeDir makes one of the store's own folders.
func makeDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if err != nil || sharedBits(filepath.Dir(path)) == 0 {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil //nolint:nilerr // another member has removed it: it is made again
	}
	share(f)
	return f.Close()
}

func mine(info os.FileInfo) bool { return ownerOf(info) == os.Geteuid() }

func ownerOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func groupOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }

// beside are the names of the store's files, by suffix.
var beside = []string{"", "-wal", "-shm", ".lock"}

// prepare makes the folder and the files of a group's store, and returns the file's one name.
func prepare(path string, g Group) (string, error) {
	if path == "" {
		return "", errors.New(`path "": want the name of a file`)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("%s: the folder of its folder can't be made: %w", path, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s: its folder can't be made: %w", path, err)
	}
	named := path
	if path, err = locate(path, Options{}); err != nil {
		return "", err
	}
	if err := g.wayTo(named, path); err != nil {
		return "", err
	}
	if err := g.alone(path); err != nil {
		return "", err
	}
	folder, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	if err := g.give(folder, g.folderMode()); err != nil {
		return "", err
	}
	if err := os.RemoveAll(path + wakeSuffix); err != nil { // it is made again, with the group
		return "", err
	}
	for _, suffix := range beside {
		if err := g.giveFile(path+suffix, suffix == "" || suffix == ".lock"); err != nil {
			return "", err
		}
	}
	return path, nil
}

// alone refuses a folder that has files of other programs, whose mode and group would change.
func (g Group) alone(path string) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)) {
			return fmt.Errorf("%s: its folder also has %s, and all in it would be the group's to remove: name a folder of its own, as %s",
				path, e.Name(), filepath.Join(dir, "leasehold", filepath.Base(path)))
		}
	}
	return nil
}

// giveFile gives a file to the group, and makes it if it has to be there.
func (g Group) giveFile(path string, must bool) error {
	flags := os.O_RDWR | unix.O_NOFOLLOW
	f, err := os.OpenFile(path, flags, 0)
	if must && errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return g.give(f, g.mode())
}

// give gives an open file its group and mode. The group comes first: a change of it clears setgid.
func (g Group) give(f *os.File, mode fs.FileMode) error {
	info, err := f.Stat()
	if err == nil && groupOf(info) != g.ID {
		if err = f.Chown(-1, g.ID); err != nil {
			return fmt.Errorf("%s can't be given to group %s: run this as root, or as its owner and a member of the group: %w", f.Name(), groupName(g.ID), err)
		}
	}
	if err == nil && info.Mode()&(fs.ModePerm|fs.ModeSetgid) != mode {
		err = f.Chmod(mode)
	}
	if err != nil {
		return fmt.Errorf("%s can't be given the mode %s: run this as root, or as its owner: %w", f.Name(), describe(mode), err)
	}
	if info, err = f.Stat(); err == nil && info.Mode()&(fs.ModePerm|fs.ModeSetgid) != mode {
		err = fmt.Errorf("%s: the system left it %s instead of %s: run this as root, or as a member of group %s", f.Name(), describe(info.Mode()), describe(mode|info.Mode().Type()), groupName(g.ID))
	}
	return err
}

// fix is what makes the store, or mends its groups and modes.
func (g Group) fix(path string) string {
	return fmt.Sprintf("run, as root: leasehold init file %s --group %s --mode %#o", path, groupName(g.ID), g.mode())
}

func (g Group) missing(path string) error {
	return fmt.Errorf("%s: there is no such store: %s: %w", path, g.fix(path), fs.ErrNotExist)
}

// admits returns nil if the files at path are as the group's members need them, and no other user
// can move them away. named is the path as the caller has it, links and all.
func (g Group) admits(named, path string) error {
	if err := g.check(); err != nil {
		return err
	}
	if err := g.wayTo(named, path); err != nil {
		return err
	}
	fix := g.fix(path)
	for _, suffix := range append([]string{"/"}, beside...) {
		name, want := path+suffix, g.mode()
		if suffix == "/" {
			name, want = filepath.Dir(path), g.folderMode()
		}
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, os.ErrNotExist) && suffix == "":
			return g.missing(path)
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return denied(name, err)
		case groupOf(info) != g.ID || info.Mode()&(fs.ModePerm|fs.ModeSetgid) != want:
			return fmt.Errorf("%s is %s of group %s, want %s of group %s, so that each member can use it: %s",
				name, describe(info.Mode()), groupName(groupOf(info)), describe(want|info.Mode().Type()), groupName(g.ID), fix)
		}
	}
	return nil
}
